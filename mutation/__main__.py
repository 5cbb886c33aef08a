"""``python -m mutation PACKAGE --coverage FILE``: how many mutants of a package tests notice.

FILE is coverage.py's data of a run with ``dynamic_context = test_function``: it says which tests
run a line, so that only those are run against a mutant of it. Give it again for tests that are
newer. Options and what counts: docs/evidence/mutation.md.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import pytest

from mutation.argued import arguments
from mutation.child import OPTIONS, Fate
from mutation.durations import Durations
from mutation.mutants import Mutant, mutants
from mutation.packages import PACKAGES, ROOT, below_source, files
from mutation.tested import Tested
from mutation.trial import Trial, Trials

BUILT = ROOT / "build" / "mutation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What became of a mutant."""

    file: str
    function: str
    line: str
    change: str
    fate: str
    number: int


@click.command()
@click.argument("package", type=click.Choice(tuple(PACKAGES)))
@click.option(
    "--coverage",
    multiple=True,
    default=[ROOT / ".coverage"],
    type=click.Path(exists=True, path_type=Path),
)
@click.option("--sample", default=300, show_default=True, help="Mutants tried, drawn at random.")
@click.option("--seed", default=0, show_default=True)
@click.option("--cap", default=60.0, show_default=True, help="Seconds of tests for one mutant.")
@click.option("--under", default="", help="Only files whose path begins so.")
@click.option("--json", "out", type=click.Path(path_type=Path))
@click.option("--far", is_flag=True, help="Also run tests of other packages that run the line.")
@click.option("--planted", is_flag=True, help="Import everything again for each mutant (slow).")
def main(  # noqa: PLR0913 - one for each option
    *,
    package: str,
    coverage: tuple[Path, ...],
    sample: int,
    seed: int,
    cap: float,
    under: str,
    out: Path | None,
    far: bool,
    planted: bool,
) -> None:
    """Try a sample of the mutants and list those that no test noticed."""
    texts = {path: path.read_text(encoding="utf-8") for path in files(package)}
    found = [(path, one) for path, text in texts.items() for one in mutants(text)]
    wanted = [two for two in found if below_source(two[0]).startswith(under)]
    chosen = random.Random(seed).sample(wanted, min(sample, len(wanted)))  # noqa: S311
    tested = Tested.read(coverage)
    trials = [
        _trial(path, texts[path], one, tested, far=far, planted=planted) for path, one in chosen
    ]
    results: list[Result] = []
    out = out or BUILT / f"{package}.json"
    out.parent.mkdir(parents=True, exist_ok=True)

    def told(number: int, fate: Fate) -> None:
        path, one = chosen[number]
        result = _result(path, texts[path], one, fate)
        results.append(result)
        if fate in ("survived", "untested"):
            click.echo(f"{number + 1}/{len(chosen)} {_told(result)}")
        head = {"package": package, "all": len(found), "seed": seed, "under": under, "cap": cap}
        rows = [asdict(result) for result in results]
        out.write_text(json.dumps(head | {"tried": rows}, indent=1), encoding="utf-8")

    plugin = Trials(trials, Durations(BUILT / "durations.json"), told, cap)
    tests = sorted({test.partition("::")[0] for trial in trials for test in trial.tests})
    code = pytest.main([*OPTIONS, "--no-header", *tests], plugins=[plugin])
    for test in sorted(plugin.broken):
        click.echo(f"fails on the source as it is, left out: {test}")
    _sum_up(package, results)
    sys.exit(int(code) if len(results) < len(chosen) else 0)


def _trial(
    path: Path, text: str, one: Mutant, tested: Tested, *, far: bool, planted: bool
) -> Trial:
    file = path.relative_to(ROOT).as_posix()
    return Trial(
        path=path,
        before=text,
        after=one.apply(text),
        tests=frozenset(tested.of(file, one.place, far=far)),
        planted=planted or not one.place.function,
    )


def _result(path: Path, text: str, one: Mutant, fate: Fate) -> Result:
    return Result(
        file=below_source(path),
        function=one.place.function,
        line=text.splitlines()[one.line - 1].strip(),
        change=str(one),
        fate=fate,
        number=one.line,
    )


def _told(result: Result) -> str:
    return (
        f"{result.fate} {result.file}:{result.number} in {result.function or 'the module'}: "
        f"`{result.line}`, {result.change}"
    )


def _sum_up(package: str, results: list[Result]) -> None:
    counts = Counter(result.fate for result in results)
    argued = {one.mutant: one for one in arguments(package)}
    equivalents = 0
    for one in results:
        said = argued.get((one.file, one.function, one.line, one.change))
        if said is not None and said.kind == "equivalent":
            if one.fate == "survived":
                equivalents += 1
            else:
                click.echo(f"argued to be equivalent, but {_told(one)}")
    noticed, tried = counts["killed"] + counts["timeout"], max(len(results), 1)
    rate = noticed / max(tried - equivalents, 1)
    click.echo(
        f"{package}: {noticed} of {tried} noticed ({noticed / tried:.1%}); without {equivalents} "
        f"equivalents {rate:.1%}; {dict(counts)}"
    )


if __name__ == "__main__":
    main()
