"""`discreet.connect`: the door to a server."""

from __future__ import annotations

from discreet.apps.client.connection import PATIENCE, connection
from discreet.apps.client.served import ServedTable, served
from discreet.core.errors import InvalidArgument


def connect(
    url: str,
    token: str,
    *,
    table: str | None = None,
    patience: float = PATIENCE,
    authority: str | None = None,
) -> ServedTable:
    """A table of a server, with the verbs of a local one: `discreet serve` is at the other end.

    ``table`` may be left out if the server has one. ``token`` is what the owner was shown for you.
    For ``patience`` seconds a server that is busy or away is asked again, always under the same
    request id: one charge, one answer. ``authority`` is a file with the certificate of the server,
    if no public authority has signed it.
    """
    made = connection(url, token, patience=patience, authority=authority)
    try:
        names = [str(one["name"]) for one in made.get("tables")]
    except (KeyError, TypeError):
        raise InvalidArgument("url: what answers there is no server of discreet.") from None
    if table is None and len(names) == 1:
        table = names[0]
    if table not in names:
        raise InvalidArgument(f"table must be one of {', '.join(names)}; got {table!r}.")
    return served(made, str(table))
