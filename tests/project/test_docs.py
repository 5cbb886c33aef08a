"""Pages are found, links lead somewhere, and every package and command is documented."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")
# Machine paths and the like: the project speaks of itself alone.
FOREIGN = re.compile(r"/(?:root|home|tmp|Users)/")


def nav_pages(entries):
    for entry in entries:
        for target in entry.values() if isinstance(entry, dict) else [entry]:
            yield from nav_pages(target) if isinstance(target, list) else [target]


def test_the_site_lists_every_page_once():
    site = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))
    listed = list(nav_pages(site["project"]["nav"]))
    assert sorted(listed) == sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target in LINK.findall(text):
        if "://" not in target and not target.startswith("#"):
            assert (page.parent / target.partition("#")[0]).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_no_machine(page):
    assert not FOREIGN.search(page.read_text(encoding="utf-8"))


def test_every_package_is_described():
    described = (DOCS / "architecture.md").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for package in (ROOT / "src" / "discreet").iterdir():
        if (package / "__init__.py").exists():
            assert f"| `{package.name}` |" in described
            assert f"`discreet.{package.name}`" in readme


def test_the_modules_that_the_architecture_names_exist():
    described = (DOCS / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:[a-z_]+/)+(?:[a-z_]+\.py)?)`", described)
    assert len(named) > 20
    for place in named:
        homes = (ROOT / "src" / "discreet", ROOT, ROOT / "research" / "src")
        nested = list((ROOT / "src" / "discreet").glob(f"*/{place}"))
        assert nested or any((home / place).exists() for home in homes), place


def test_every_code_block_says_its_language():
    for page in PAGES:
        fences = re.findall(r"^```(.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert all(opening for opening in fences[::2]), page.name
        assert len(fences) % 2 == 0, page.name
