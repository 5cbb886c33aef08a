"""The configuration of a server: TOML that names addresses, stores and tables."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from discreet.accounting.guarantee import Guarantee
from discreet.core import _validate as check
from discreet.core.errors import InvalidArgument
from discreet.query._release_plan import TableSpec
from discreet.spec import table as declared

_SERVER = (
    "address",
    "hosts",
    "proxy",
    "certificate",
    "key",
    "workers",
    "runners",
    "store",
    "ledger",
)
_RATES = {
    "requests_per_second": 20,
    "burst": 60,
    "body_bytes": 1 << 16,
    "seconds_to_send": 10,
    "lease_seconds": 15,
    "queue": 200,
    "queue_per_person": 20,
    "connections": 500,
}
_TABLE = (
    *(
        "name",
        "title",
        "description",
        "columns",
        "account",
        "limit",
        "analyst_limit",
        "expected_rows",
    ),
    *declared.TABLE,
)
NAME_LENGTH = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class RateConfig:
    """How much one caller, and all of them, may ask for at once."""

    requests_per_second: int = _RATES["requests_per_second"]
    burst: int = _RATES["burst"]
    body_bytes: int = _RATES["body_bytes"]
    seconds_to_send: int = _RATES["seconds_to_send"]
    lease_seconds: int = _RATES["lease_seconds"]
    """After this silence of a worker its releases are taken over by another."""
    queue: int = _RATES["queue"]
    queue_per_person: int = _RATES["queue_per_person"]
    connections: int = _RATES["connections"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableConfig:
    """One table that may be asked. Nothing has been opened yet."""

    name: str
    title: str
    description: str
    source: str = field(repr=False)
    delimiter: str
    records: Literal["lines", "quoted"]
    engine: Literal["spark"] | None
    spark: str | None
    setting: TableSpec
    account: str
    limit: Guarantee
    analyst_limit: Guarantee | None
    """What an analyst's account gets, unless the owner says otherwise."""
    expected_rows: int | None
    """A public guess of the number of rows, for forecasts."""
    measure: Literal["epsilon", "rho"] = "epsilon"


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A checked configuration."""

    host: str
    port: int
    hosts: tuple[str, ...]
    """Names under which clients may address the server."""
    proxy: tuple[str, ...]
    certificate: Path | None
    key: Path | None = field(repr=False)
    workers: int
    runners: int
    store: str = field(repr=False)  # addresses may hold passwords
    ledger: str = field(repr=False)
    rates: RateConfig
    tables: Mapping[str, TableConfig]

    @property
    def loopback(self) -> bool:
        """Whether only this machine can connect."""
        return is_loopback(self.host)

    @property
    def secure(self) -> bool:
        """Whether cookies may be kept to encrypted connections."""
        return self.certificate is not None or bool(self.proxy)

    @property
    def url(self) -> str:
        """Where a browser on this machine finds it."""
        scheme = "http" if self.certificate is None else "https"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{self.port}"


def read(path: Path) -> Config:
    """Read and check a configuration; every error names its section."""
    content = declared.read(path, ("server", "rates", "table"))
    server = declared.known("server", content.get("server", {}), _SERVER)
    rates = declared.known("rates", content.get("rates", {}), tuple(_RATES))
    host, port = _address(server.get("address", "127.0.0.1:8337"))
    tables = content.get("table", [])
    if not isinstance(tables, list) or not tables:
        raise InvalidArgument("The file needs at least one [[table]].")
    made = [_table(number, one, path.parent) for number, one in enumerate(tables, 1)]
    for what, names in (
        ("name", [one.name for one in made]),
        ("account", [o.account for o in made]),
    ):
        if len(set(names)) < len(names):
            raise InvalidArgument(f"table: every {what} must be different.")
    config = Config(
        host=host,
        port=port,
        hosts=tuple(name.lower() for name in _texts(server, "hosts")),
        proxy=_proxies(server),
        certificate=_file(server, "certificate", path.parent),
        key=_file(server, "key", path.parent),
        workers=check.count("server: workers", server.get("workers", 1)),
        runners=check.count("server: runners", server.get("runners", 1)),
        store=declared.ledger(str(server.get("store", "sqlite:///service.db")), path.parent),
        ledger=declared.ledger(str(server.get("ledger", "sqlite:///budget.db")), path.parent),
        rates=RateConfig(**{name: check.count(f"rates: {name}", rates[name]) for name in rates}),
        tables={one.name: one for one in made},
    )
    _refuse_plain(config)
    return config


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _refuse_plain(config: Config) -> None:
    if (config.certificate is None) != (config.key is None):
        raise InvalidArgument("server: certificate and key go together.")
    if config.loopback:
        return
    if not config.secure:
        raise InvalidArgument(
            f"server: plain HTTP on {config.host} would show tokens and answers to the network. "
            "Give certificate and key, or proxy = the address of the proxy that encrypts, or stay "
            "on 127.0.0.1."
        )
    if not config.hosts:
        raise InvalidArgument(
            "server: hosts must list the names under which clients address the server."
        )


def _table(number: int, given: object, folder: Path) -> TableConfig:
    where = f"table {number}"
    one = declared.known(where, given, _TABLE)
    name = declared.text(one, where, "name")
    if not is_name(name):
        raise InvalidArgument(f"{where}: name must be letters, digits, - or _, at most 64.")
    try:
        setting = declared.table_spec(one, one.get("columns"))
        allowance = one.get("limit")
        limit = declared.limit(allowance, setting.relation)
        own = one.get("analyst_limit")
        return TableConfig(
            name=name,
            title=str(one.get("title", name)),
            description=str(one.get("description", "")),
            source=declared.source(declared.text(one, where, "source"), folder),
            delimiter=one.get("delimiter", ","),
            records=one.get("records", "lines"),
            engine=one.get("engine"),
            spark=one.get("spark"),
            setting=setting,
            account=str(one.get("account", name)),
            limit=limit,
            analyst_limit=None if own is None else declared.limit(own, setting.relation),
            expected_rows=None
            if "expected_rows" not in one
            else check.count("expected_rows", one["expected_rows"]),
            measure="rho" if {"rho", "mu"} & set(allowance or ()) else "epsilon",
        )
    except InvalidArgument as error:
        raise InvalidArgument(f"{where}: {error}") from None


def is_name(text: object) -> bool:
    """Whether a text can stand in an address: letters, digits, dash and underscore."""
    return (
        isinstance(text, str)
        and 0 < len(text) <= NAME_LENGTH
        and text.isascii()
        and text.replace("-", "a").replace("_", "a").isalnum()
    )


def _address(given: object) -> tuple[str, int]:
    host, _, port = str(given).rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise InvalidArgument(f"server: address must be HOST:PORT, got {given!r}.")
    return host.strip("[]"), int(port)


def _texts(section: Mapping[str, Any], name: str) -> tuple[str, ...]:
    given = section.get(name, [])
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, list) or not all(isinstance(one, str) and one for one in listed):
        raise InvalidArgument(f"server: {name} must be text or a list of texts.")
    return tuple(listed)


def _proxies(server: Mapping[str, Any]) -> tuple[str, ...]:
    """Addresses of proxies; their word about who calls is believed."""
    for one in (found := _texts(server, "proxy")):
        try:
            everybody = ipaddress.ip_network(one).prefixlen == 0
        except ValueError:
            raise InvalidArgument(
                f"server: proxy must be the address of a machine or a network, got {one!r}."
            ) from None
        if everybody:
            raise InvalidArgument("server: proxy must not be every address there is.")
    return found


def _file(section: Mapping[str, Any], name: str, folder: Path) -> Path | None:
    if name not in section:
        return None
    path = folder / declared.text(section, "server", name)
    if not path.is_file():
        raise InvalidArgument(f"server: {name} {path} does not exist.")
    return path
