"""The command line: parse, call, print."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from discreet.core.errors import PrivacyError

EXIT_REFUSED = 2
"""Bad input or a refusal, with a message; nothing was spent."""


class _Refusing(click.Group):
    """Show the package's own errors as one line, without a traceback."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except PrivacyError as error:
            click.echo(f"discreet: {error}", err=True)
            ctx.exit(EXIT_REFUSED)


@click.group(cls=_Refusing, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="discreet")
def main() -> None:
    """Differential privacy for people who must publish."""


@main.command()
@click.option(
    "--figure",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("discreet-demo.png"),
    show_default=True,
    help="Where to write the histogram.",
)
def demo(figure: Path) -> None:
    """Tell a short story: a private count and histogram, the guarantee and why, an audit."""
    from discreet.apps.cli.demo import tell

    tell(figure)


@main.command()
@click.argument("names", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.option("--list", "only_list", is_flag=True, help="Only list the names.")
def audit(names: tuple[str, ...], *, as_json: bool, only_list: bool) -> None:
    """Attack every registered mechanism: claimed, exact and attacked epsilon.

    NAMES keeps the cases whose name contains one of them. Exits with 1 if a correct mechanism is
    accused or a broken one is missed.
    """
    from discreet.apps.cli.audit import run

    sys.exit(run(names, as_json=as_json, only_list=only_list))
