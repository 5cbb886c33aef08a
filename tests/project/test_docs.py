"""Pages are found, links lead somewhere, and every package and command is documented."""

import ast
import importlib
import inspect
import re
import tomllib
from pathlib import Path

import pytest

import discreet

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


def public_namespaces():
    """`discreet`, the namespaces that it offers, and those that they offer."""
    todo, found = [discreet], {}
    while todo:
        one = todo.pop()
        found[one.__name__] = one
        todo += [held for held in public(one).values() if inspect.ismodule(held)]
    return found


def public(namespace):
    """What a namespace lists, or else what it defines."""
    if hasattr(namespace, "__all__"):
        return {name: getattr(namespace, name) for name in namespace.__all__}
    return {
        name: one
        for name, one in vars(namespace).items()
        if name[0] != "_" and getattr(one, "__module__", "") == namespace.__name__
    }


def test_the_reference_has_every_public_object_and_no_internal_one():
    pages = [page.read_text(encoding="utf-8") for page in (DOCS / "reference").glob("*.md")]
    parts = [page.partition("\n## Results and plans\n") for page in pages]
    entries, returned = (
        [entry for part in found for entry in re.findall(r"^::: (\S+)", part, re.MULTILINE)]
        for found in zip(*((first, last) for first, _, last in parts), strict=True)
    )
    for entry in returned:
        home, _, name = entry.rpartition(".")
        assert inspect.isclass(getattr(importlib.import_module(home), name)), entry
    assert len(entries) == len(set(entries))
    namespaces = public_namespaces()
    shown = set()
    for entry in entries:
        if entry in namespaces:
            shown |= {id(one) for one in public(namespaces[entry]).values()}
        elif entry != "discreet_studies":  # a package of its own
            home, _, name = entry.rpartition(".")
            assert name in getattr(namespaces.get(home), "__all__", ()), f"{entry} is internal"
            shown.add(id(getattr(namespaces[home], name)))
    missing = {
        f"{home}.{name}"
        for home, namespace in namespaces.items()
        for name, one in public(namespace).items()
        if not inspect.ismodule(one) and id(one) not in shown
    }
    assert not missing


CODE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
# The pictures of this site are drawn with the drawing of reports.
DRAWN = {"examples/figures/": "discreet.report"}
INTERNAL = {
    # Theory computes what it states with what it proves something about.
    "docs/theory/accounting.md": {"discreet.accounting.calibrate", "discreet.core.events"},
    "docs/theory/blackbox.md": {
        "discreet.models.blackbox.certificate",
        "discreet.models.blackbox.interval_fit",
        "discreet.models.blackbox.lipschitz_fit",
        "discreet.models.blackbox.metrics",
        "discreet.models.blackbox.output_ranges",
    },
    # Engines, and the exact integers that no user gets.
    "docs/theory/data.md": {
        "discreet.data.execute",
        "discreet.data.program",
        "discreet.data.source",
    },
    "docs/theory/intervals.md": {"discreet.intervals.interval"},
    "docs/theory/noise.md": {"discreet.noise.laplace"},
    # Formulas of the paper, which are compared with ours.
    "docs/theory/regression.md": {
        "discreet.accounting.conversion",
        "discreet.models.regression.ssp_and_adassp",
    },
    "docs/theory/series.md": {"discreet.accounting.conversion", "discreet.audit.series._design"},
    "docs/theory/sgd-convergence.md": {"discreet.models.dp_sgd._laplace_rates"},
    "docs/theory/sgd.md": {"discreet.models.dp_sgd.budget"},
    "docs/theory/shuffle.md": {"discreet.accounting.shuffle"},
    "docs/theory/smooth-sensitivity.md": {
        "discreet.mechanisms.data_dependent._smooth_noise",
        "discreet.mechanisms.data_dependent.weighted_sensitivity",
    },
    # Starts the server of the demo, to have something to connect to.
    "examples/24_connect.py": {"discreet.server.demo"},
    # Mistakes that the audit must find; a bound by itself; a stream without a file.
    "examples/figures/audit.py": {"discreet.audit.cases.broken"},
    "examples/figures/shuffle.py": {"discreet.accounting.shuffle"},
    "examples/figures/stream.py": {"discreet.ranges.stream.state"},
}
"""The modules that are no public namespace, and are shown all the same: each for its reason."""


def imports(code):
    """The names of `discreet` that code imports, in full."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "discreet":
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name.split(".")[0] == "discreet")


def test_docs_and_examples_import_public_names_only():
    namespaces = public_namespaces()
    known = set(namespaces) | {
        f"{home}.{name}" for home, namespace in namespaces.items() for name in public(namespace)
    }
    internal = {}
    for page in [*PAGES, *(ROOT / "examples").rglob("*.py")]:
        text, name = page.read_text(encoding="utf-8"), str(page.relative_to(ROOT))
        for code in CODE.findall(text) if page.suffix == ".md" else [text]:
            used = {one.rpartition(".")[0] for one in set(imports(code)) - known}
            drawn = next((of for folder, of in DRAWN.items() if name.startswith(folder)), None)
            used = {one for one in used if drawn is None or not one.startswith(drawn)}
            if used:
                internal.setdefault(name, set()).update(used)
    assert internal == INTERNAL


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


@pytest.mark.parametrize("page", ["README.md", "docs/quick-start.md"])
def test_a_first_number_takes_five_concepts(page):
    """Whatever of discreet is named before a first number: functions, methods and arguments."""
    first = CODE.search((ROOT / page).read_text(encoding="utf-8"))[1]
    named = set()
    for node in ast.walk(ast.parse(first)):
        if isinstance(node, ast.Call):
            named |= {one.arg for one in node.keywords}
            called = ast.unparse(node.func)
            if called.startswith("discreet."):
                named.add(called.removeprefix("discreet."))
    assert named == {"table", "columns", "integer", "budget", "epsilon"}
