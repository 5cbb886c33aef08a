"""The command line: parse, call, print."""

from __future__ import annotations

import errno
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import click

from discreet.cli.local import local
from discreet.cli.series import series
from discreet.core._plugins import COMMANDS, guests, load, plugins
from discreet.core.errors import PrivacyError, Unsupported

EXIT_REFUSED = 2
"""Bad input or a refusal, with a message."""
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


class _Commands(click.Group):
    """The commands, with those of other installed packages; own errors are shown as one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *plugins(COMMANDS)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        added = plugins(COMMANDS).get(cmd_name)
        return None if added is None else load(added)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except PrivacyError as error:
            click.echo(f"discreet: {error}", err=True)
        except OSError as error:
            if error.errno == errno.EPIPE:  # whoever read the output has gone; click is quiet
                raise
            click.echo(f"discreet: {error.filename or 'a file'}: {error.strerror}.", err=True)
        raise click.exceptions.Exit(EXIT_REFUSED)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="discreet")
def main() -> None:
    """Differential privacy for people who must publish."""


@main.command(short_help="Publish a dozen statistics of real data: start here.")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("discreet-demo"),
    show_default=True,
    help="Where the data, the release file and the report go.",
)
def demo(folder: Path) -> None:
    """Plan and release a dozen statistics from real data, and write the report."""
    from discreet.cli.demo import run

    sys.exit(run(folder))


class _Audits(click.Group):
    """Audits by the kind of what is audited; names alone are those of mechanisms."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or args[0] not in {*self.commands, *ctx.help_option_names}:
            args = ["mechanisms", *args]
        return super().parse_args(ctx, args)


@main.group(cls=_Audits, short_help="Attack every mechanism, or audit published tables.")
def audit() -> None:
    """Attack mechanisms (the default), or audit tables as they were published.

    `discreet audit laplace` is short for `discreet audit mechanisms laplace`.
    """


@audit.command("mechanisms", short_help="Attack every mechanism: claimed, exact, attacked epsilon.")
@click.argument("names", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.option("--list", "only_list", is_flag=True, help="Only list the names.")
@click.option("--published", is_flag=True, help="Published claims that do not hold, and what does.")
@click.option(
    "--card",
    "to",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the card of the audit here: .json, .md or .html.",
)
def audit_mechanisms(
    names: tuple[str, ...], *, as_json: bool, only_list: bool, published: bool, to: Path | None
) -> None:
    """Attack every registered mechanism: claimed, exact and attacked epsilon.

    NAMES keeps the cases whose name contains one of them. Exits with 1 if a correct mechanism is
    accused or a broken one is missed.
    """
    from discreet.cli.audit import run

    sys.exit(run(names, as_json=as_json, only_list=only_list, published=published, to=to))


@audit.command("tables", short_help="What published tables of counts reveal together.")
@click.argument("files", nargs=-1, required=True, type=_FILE)
@click.option("--columns", help="Columns that classify people, with commas; of all tables.")
@click.option("--across", help="Name for what runs across the page in a cross-tabulation.")
@click.option("--suppressed", multiple=True, help="Mark of a hidden cell; several if needed.")
@click.option("--below", type=int, help="The published rule: hidden cells are smaller than this.")
@click.option("--zeros-published", is_flag=True, help="No hidden cell is 0.")
@click.option("--rounded", type=int, help="Base to which all counts are rounded.")
@click.option(
    "--rounding",
    type=click.Choice(["nearest", "random"]),
    default="nearest",
    show_default=True,
    help="With --rounded: to the nearest multiple, or to either of two.",
)
@click.option("--population", multiple=True, help="TABLE:COLUMN=LABEL that all its people share.")
@click.option("--open-column", multiple=True, help="Column with more labels than are published.")
@click.option("--hierarchies", type=_FILE, help="JSON of coarse labels and what they cover.")
@click.option("--threshold", type=int, help="Small counts are below it; else --below, or 5.")
@click.option("--seconds", type=float, default=60.0, show_default=True, help="Time for bounds.")
@click.option("--suggest", is_flag=True, help="Also say which further cells to hide.")
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Write a page here.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def audit_tables(
    files: tuple[Path, ...],
    *,
    open_column: tuple[str, ...],
    html: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Compute what FILES, published tables of counts in CSV, reveal together.

    Bounds every hidden cell exactly, and finds small counts that follow from differences of tables.
    Nothing private is read or charged. The page shows what was hidden: only you can read the file.
    Exits with 1 if a hidden cell can be computed exactly, or a small difference follows.
    """
    from discreet.cli.audit_tables import TableOptions, run

    options = TableOptions(open_columns=open_column, **given)
    sys.exit(run(files, options, html=html, machine=as_json))


@main.command(short_help="Cost and error of a release FILE; nothing is read or spent.")
@click.argument("file", type=_FILE)
@click.option("--suggest-bounds", is_flag=True, help="Find bounds and limits: CHARGES the account.")
@click.option("--epsilon", type=float, help="With --suggest-bounds: what that may cost.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def plan(file: Path, *, suggest_bounds: bool, epsilon: float | None, as_json: bool) -> None:
    """Show what the statistics of a release FILE cost and how exact they will be.

    Touches no private data: the source is not even opened. Only with --suggest-bounds the data are
    read and the account is charged, to print bounds and limits that can be pasted into FILE.
    """
    if suggest_bounds:
        from discreet.cli import suggest

        sys.exit(suggest.run(file, epsilon=epsilon, as_json=as_json))
    from discreet.cli.plan import run

    sys.exit(run(file, as_json=as_json))


@main.command(short_help="Count exactly what is in a SOURCE: private, for its owner alone.")
@click.argument("source")
@click.argument("schema", type=_FILE)
@click.option("--private-output", is_flag=True, help="Print even where this is no terminal.")
def check(source: str, schema: Path, *, private_output: bool) -> None:
    """Count what becomes of each value of SOURCE: exact, free, and NOT a release.

    SCHEMA is a release file, or its sections [table] and [columns] alone. Shows values of single
    people: misfits with their lines, smallest and largest values, rows per privacy unit. It is for
    the owner of the data; bounds that are chosen by it are a function of the data. Exits with 2 if
    the output is not a terminal.
    """
    from discreet.cli.check import run

    sys.exit(run(source, schema, private_output=private_output))


@main.command(short_help="Charge the account and publish a release FILE.")
@click.argument("file", type=_FILE)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the results; beside FILE by default.",
)
@click.option("--overwrite", is_flag=True, help="Replace results; releasing again costs again.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def release(file: Path, *, output: Path | None, overwrite: bool, as_json: bool) -> None:
    """Charge the account and publish the statistics of a release FILE.

    Writes JSON, CSV and one HTML page. Exits with 2 if the file or the data do not fit, with 3 if
    the budget is short (then nothing is read or spent).
    """
    from discreet.cli.release import run

    sys.exit(run(file, folder=output, overwrite=overwrite, as_json=as_json))


@main.command(context_settings={"ignore_unknown_options": True})
@click.argument("file", type=_FILE)
@click.argument("ends", nargs=-1)
@click.option(
    "--confidence", type=float, default=0.95, show_default=True, help="Confidence of the interval."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def ranges(file: Path, *, ends: tuple[str, ...], confidence: float, as_json: bool) -> None:
    """Answer a range from a released FILE: costs nothing.

    ENDS are FIRST and LAST, both included; for several columns a pair for each. A dash is an open
    end; FIRST alone is one value, no ENDS are everything. Of bins, FIRST is the lower edge of one
    and LAST the upper edge of another.
    """
    from discreet.cli.ranges import run

    sys.exit(run(file, ends, confidence=confidence, as_json=as_json))


@main.command(short_help="A table of a released FILE of many tables.")
@click.argument("file", type=_FILE)
@click.option("--by", help="Columns of the table, with commas; without it, what tables there are.")
@click.option("--nonnegative", is_flag=True, help="Without negative cells: biased, to print.")
@click.option("--integers", is_flag=True, help="Whole numbers that add up, and none negative.")
@click.option(
    "--confidence", type=float, default=0.95, show_default=True, help="Confidence of the intervals."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON array.")
def tables(
    file: Path,
    *,
    by: str | None,
    nonnegative: bool,
    integers: bool,
    confidence: float,
    as_json: bool,
) -> None:
    """Show a table of a released FILE of many tables: costs nothing.

    FILE is the JSON of a release of marginals, or of reconciled releases.
    """
    from discreet.cli.marginals import show_tables

    sys.exit(
        show_tables(
            file,
            by=by,
            nonnegative=nonnegative,
            integers=integers,
            confidence=confidence,
            as_json=as_json,
        )
    )


@main.command(short_help="Synthetic rows of a released FILE of many tables.")
@click.argument("file", type=_FILE)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="File to write, .csv or .parquet.",
)
@click.option("--size", type=int, help="Number of rows; else what the release estimates.")
@click.option(
    "--values",
    type=click.Choice(["uniform", "middle", "label"]),
    default="uniform",
    show_default=True,
    help="What stands for a bin of numbers or dates.",
)
@click.option("--seed", type=int, help="Seed of the public randomness, to make them again.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def synthesize(
    file: Path,
    *,
    out: Path,
    size: int | None,
    values: Literal["uniform", "middle", "label"],
    seed: int | None,
    as_json: bool,
) -> None:
    """Write synthetic rows whose tables are near those of a released FILE: costs nothing.

    Prints a proven bound on the error of each table, and what is not promised.
    """
    from discreet.cli.marginals import write_rows

    sys.exit(write_rows(file, size=size, out=out, values=values, seed=seed, as_json=as_json))


@main.command(short_help="Make released FILES of the same rows agree.")
@click.argument("files", nargs=-1, required=True, type=_FILE)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write it here, too.")
@click.option("--json", "as_json", is_flag=True, help="One JSON array.")
def reconcile(files: tuple[Path, ...], *, out: Path | None, as_json: bool) -> None:
    """Put released FILES of the same rows together, so that they agree: costs nothing.

    FILES are JSON of counts, of releases of marginals, or reports of `discreet release`.
    """
    from discreet.cli.marginals import write_reconciled

    sys.exit(write_reconciled(files, out=out, as_json=as_json))


@main.command(short_help="What a guarantee means: what any attacker gains, at most.")
@click.argument("file", type=_FILE, required=False)
@click.option("--epsilon", type=float, help="Privacy loss; alone for pure DP.")
@click.option("--delta", type=float, help="With --epsilon: for approximate DP.")
@click.option("--rho", type=float, help="Instead: zero-concentrated DP.")
@click.option("--mu", type=float, help="Instead: Gaussian DP.")
@click.option(
    "--relation",
    type=click.Choice(["ADD_REMOVE", "REPLACE_ONE", "LOCAL"]),
    default="ADD_REMOVE",
    show_default=True,
    help="Neighboring relation of the budget.",
)
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), help="Draw it here.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def explain(
    file: Path | None, *, relation: str, plot: Path | None, as_json: bool, **budget: float | None
) -> None:
    """Say what any attacker gains from a release, at most.

    FILE is the JSON of a card, a release, a result or a report. Without it, give a budget. Nothing
    is read from private data or charged.
    """
    from discreet.cli.explain import run

    amounts = (budget["epsilon"], budget["delta"], budget["rho"], budget["mu"])
    sys.exit(run(amounts, file, relation=relation, picture=plot, as_json=as_json))


@main.command(short_help="Write the card of a release, for people or a registry.")
@click.argument("file", type=_FILE, required=False)
@click.option(
    "--format",
    "kind",
    type=click.Choice(["json", "markdown", "html", "registry", "schema"]),
    default="json",
    show_default=True,
    help="JSON, a page, a draft for the registry of deployments, or the JSON Schema of cards.",
)
@click.option("--title", help="Title of the card.")
@click.option("--person", multiple=True, help="NAME=TEXT that only you know, such as curator=We.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Write it here.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
def card(
    file: Path | None,
    *,
    kind: str,
    title: str | None,
    person: tuple[str, ...],
    output: Path | None,
    as_json: bool,
) -> None:
    """Write the statement of a release: what it promises, to whom, and how it was made.

    FILE is the JSON of a card, a release, a report or a local collection. Nothing is read from
    private data or charged.
    """
    from discreet.cli.card import write

    sys.exit(write(file, kind="json" if as_json else kind, title=title, person=person, to=output))


@main.command(short_help="Compute the numbers of a release card again.")
@click.argument("file", type=_FILE)
@click.option("--release", type=_FILE, help="JSON of the release or report to compare with.")
@click.option("--ledger", "url", help="URL of the ledger that holds the entry.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def verify(file: Path, *, release: Path | None, url: str | None, as_json: bool) -> None:
    """Compute the numbers of a release card again, from the events that stand on it.

    Exits with 1, and names the field, if a number is lower than the events allow, or if the card
    does not fit the release or the ledger.
    """
    from discreet.cli.card import check

    sys.exit(check(file, release=release, url=url, as_json=as_json))


@main.command(short_help="Answer a SELECT of aggregates: charges the account.")
@click.argument("file", type=_FILE)
@click.argument("statement")
@click.option("--epsilon", type=float, help="Privacy loss of the whole answer.")
@click.option("--delta", type=float, help="With --epsilon: Gaussian noise.")
@click.option("--rho", type=float, help="Instead: zero-concentrated DP.")
@click.option("--parameter", multiple=True, help="NAME=VALUE of a parameter such as :low.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def sql(
    file: Path, statement: str, *, parameter: tuple[str, ...], as_json: bool, **budget: float | None
) -> None:
    """Answer STATEMENT, one SELECT, from the table of a release FILE.

    Without a budget it only shows the queries: nothing is read or spent. With one the account is
    charged before the data are read. Exits with 3 if the budget is short.
    """
    from discreet.cli.sql import run

    amounts = (budget["epsilon"], budget["delta"], budget["rho"])
    sys.exit(run(file, statement, amounts, parameters=parameter, as_json=as_json))


@main.command("guests", short_help="What other installed packages add to discreet.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def show_guests(*, as_json: bool) -> None:
    """List sources, mechanisms, commands, audits and report sections of other packages.

    Each is imported. One that cannot be is named with "fails to load" and left out everywhere.
    """
    found = guests()
    if as_json:
        click.echo(json.dumps({"guests": [asdict(one) for one in found]}, indent=1))
        return
    for one in found:
        fails = "" if one.loads else "  fails to load"
        group = one.group.partition(".")[2]
        click.echo(f"{group}  {one.name}  {one.package} {one.version}{fails}")
    if not found:
        click.echo("No other package adds to discreet.")


@main.command(short_help="Make bash, fish or zsh complete commands.")
@click.argument("shell", type=click.Choice(["bash", "fish", "zsh"]))
def completion(shell: str) -> None:
    """Print what makes SHELL complete commands, options and file names.

    For bash: `discreet completion bash >> ~/.bashrc`, and open a new shell.
    """
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    if made is None:  # pragma: no cover - click knows all three
        raise Unsupported(f"click cannot complete in {shell}.")
    click.echo(made(main, {}, "discreet", "_DISCREET_COMPLETE").source())


main.add_command(local)
main.add_command(series)


@main.group(short_help="Look at a ledger: what was spent, on what, what is left.")
def ledger() -> None:
    """Look at a ledger: URL is sqlite:///FILE or postgresql://..."""


@ledger.command("accounts")
@click.argument("url")
@click.option("--json", "as_json", is_flag=True, help="One JSON array.")
def ledger_accounts(url: str, *, as_json: bool) -> None:
    """List accounts, limits and what is left."""
    from discreet.cli.ledger import accounts

    sys.exit(accounts(url, as_json=as_json))


@ledger.command("show")
@click.argument("url")
@click.argument("account")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def ledger_show(url: str, account: str, *, as_json: bool) -> None:
    """Show the history of one account."""
    from discreet.cli.ledger import show

    sys.exit(show(url, account, as_json=as_json))


@ledger.command("verify", short_help="Check every hash and every sum.")
@click.argument("url")
@click.option("--heads", type=_FILE, help="JSON of heads that were kept elsewhere.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def ledger_verify(url: str, *, heads: Path | None, as_json: bool) -> None:
    """Check every hash and every sum; exits with 1 if something is wrong."""
    from discreet.cli.ledger import verify

    sys.exit(verify(url, heads=heads, as_json=as_json))


@ledger.command("export")
@click.argument("url")
@click.option("--kind", type=click.Choice(["json", "csv"]), default="json", show_default=True)
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="A file.")
@click.option("--json", "as_json", is_flag=True, help="The same as --kind json.")
def ledger_export(
    url: str, *, kind: Literal["json", "csv"], output: Path | None, as_json: bool
) -> None:
    """Write the whole ledger as JSON (complete) or CSV (for people)."""
    from discreet.cli.ledger import export

    sys.exit(export(url, path=output, kind="json" if as_json else kind))
