"""The command line: parse, call, print."""

from __future__ import annotations

import errno
import sys
from pathlib import Path
from typing import Literal

import click

from discreet.cli.local import local
from discreet.cli.series import series
from discreet.core._plugins import COMMANDS, plugins
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
        return None if added is None else added.load()

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


@main.command(short_help="Attack every mechanism: claimed, exact, attacked epsilon.")
@click.argument("names", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.option("--list", "only_list", is_flag=True, help="Only list the names.")
@click.option("--published", is_flag=True, help="Published claims that do not hold, and what does.")
def audit(names: tuple[str, ...], *, as_json: bool, only_list: bool, published: bool) -> None:
    """Attack every registered mechanism: claimed, exact and attacked epsilon.

    NAMES keeps the cases whose name contains one of them. Exits with 1 if a correct mechanism is
    accused or a broken one is missed.
    """
    from discreet.cli.audit import run

    sys.exit(run(names, as_json=as_json, only_list=only_list, published=published))


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
