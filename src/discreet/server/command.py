"""`discreet serve`: run a service, make and revoke tokens."""

from __future__ import annotations

from pathlib import Path

import click

from discreet.core.errors import Unsupported

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_FOLDER = click.Path(file_okay=False, path_type=Path)


class _Serving(click.Group):
    """Without the name of a command, `run` is meant: `discreet serve CONFIG`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_Serving, short_help="A service with a dashboard for a team; try --demo.")
def serve() -> None:
    """Serve tables to analysts: `discreet serve CONFIG`, or `discreet serve --demo`."""


@serve.command("run")
@click.argument("config", type=_FILE, required=False)
@click.option("--demo", is_flag=True, help="Real data, three people, nothing to prepare.")
@click.option(
    "--folder",
    type=_FOLDER,
    default=Path("discreet-service"),
    show_default=True,
    help="With --demo: where data, configuration and ledger go.",
)
@click.option(
    "--address", default="127.0.0.1:8337", show_default=True, help="With --demo: HOST:PORT."
)
@click.option("--workers", type=int, default=1, show_default=True, help="With --demo: processes.")
def run(config: Path | None, *, demo: bool, folder: Path, address: str, workers: int) -> None:
    """Run the service of a CONFIG until it is told to stop."""
    from discreet.server import config as configs

    try:
        from discreet.server import serve as server
    except ModuleNotFoundError:
        raise Unsupported("A server needs more libraries: pip install 'discreet[web]'.") from None
    if demo == (config is not None):
        raise click.UsageError("Name a CONFIG, or use --demo.")
    if demo:
        from discreet.server.demo import prepare

        made = prepare(folder, address=address, workers=workers)
        click.echo(f"A service in {folder}. Sign in at {made.url} with one of these tokens:")
        for role, token in made.tokens.items():
            click.echo(f"  {role:8} {token}")
        click.echo("Stop it with Ctrl-C. They are shown this once.")
        config = made.config
    if config is not None:
        click.echo(f"Serving {configs.read(config).url}", err=True)
        server.run(config)


@serve.command("token")
@click.argument("config", type=_FILE)
@click.argument("name")
@click.option(
    "--role", type=click.Choice(["owner", "analyst", "auditor"]), required=True, help="What for."
)
@click.option("--days", type=int, default=90, show_default=True, help="How long it lasts.")
def token(config: Path, name: str, *, role: str, days: int) -> None:
    """Print a token for NAME, who is added if unknown. It is shown this once."""
    from datetime import timedelta

    from discreet.server import config as configs
    from discreet.server.store import open_store
    from discreet.server.users import UserStore

    people = UserStore(open_store(configs.read(config).store))
    made, expires = people.add(name, role, life=timedelta(days=days))
    click.echo(made)
    click.echo(f"{name}, {role}, until {expires:%Y-%m-%d}", err=True)


@serve.command("revoke")
@click.argument("config", type=_FILE)
@click.argument("name")
def revoke(config: Path, name: str) -> None:
    """End all tokens and sessions of NAME, at once."""
    from discreet.server import config as configs
    from discreet.server.store import open_store
    from discreet.server.users import UserStore

    UserStore(open_store(configs.read(config).store)).revoke(name)
    click.echo(f"{name} is revoked.", err=True)
