"""Every figure of the gallery is drawn by an example, and is what that example draws."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "examples" / "figures").glob("*.py"))
SHOWN = ROOT / "docs" / "gallery"
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


def differs(made, kept):
    """The first place where two pictures differ by more than another machine's last digit."""
    if NUMBER.split(made) != NUMBER.split(kept):
        return "words"
    numbers = (
        [float(found.replace(",", "")) for found in NUMBER.findall(text)] for text in (made, kept)
    )
    for one, other in zip(*numbers, strict=True):
        if abs(one - other) > 0.2 + 0.001 * abs(other):
            return f"{one} for {other}"
    return None


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_figure_is_what_its_example_draws(script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(script), run_name="__main__")
    (made,) = tmp_path.iterdir()
    assert made.name == f"{script.stem}.svg"
    kept = (SHOWN / made.name).read_text(encoding="utf-8")
    assert differs(made.read_text(encoding="utf-8"), kept) is None


def test_the_gallery_shows_every_figure_and_no_other():
    page = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    shown = re.findall(r"!\[[^\]]+\]\(gallery/([a-z]+)\.svg\)", page)
    assert sorted(shown) == [script.stem for script in SCRIPTS]
    assert sorted(path.stem for path in SHOWN.iterdir()) == sorted(shown)
    assert all(f"examples/figures/{name}.py" in page for name in shown)


def test_a_changed_picture_is_noticed():
    kept = (SHOWN / "ladder.svg").read_text(encoding="utf-8")
    assert differs(kept, kept) is None
    assert differs(kept.replace("2,331", "2,231"), kept) == "2231.0 for 2331.0"
    assert differs(kept.replace("curator", "server"), kept) == "words"
