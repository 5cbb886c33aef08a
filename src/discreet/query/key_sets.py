"""Which groups a question is about: listed, found in a public table, or discovered."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

from discreet.core import _validate as check
from discreet.core.errors import InvalidArgument
from discreet.data.program import Key
from discreet.data.schema import Label


@runtime_checkable
class HasKeys(Protocol):
    """What has keys and their names: a release, or a key set."""

    @property
    def keys(self) -> tuple[Key, ...]:
        """The keys."""

    @property
    def key_columns(self) -> tuple[str, ...]:
        """What they are values of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySet:
    """Hold the public keys of groups. Made by `keys`.

    Attributes:
        keys: Keys, each a tuple with one value for each grouping column.
        key_columns: Names of the columns that the keys are values of; empty if not known.
        include_other: Whether the rows of all other keys count in one last group, "(other)".

    Examples:
        >>> from discreet import query
        >>> query.keys(["f", "m"]).keys
        (('f',), ('m',))
    """

    keys: tuple[Key, ...]
    key_columns: tuple[str, ...] = ()
    include_other: bool = False

    def __repr__(self) -> str:
        also = ", and one group for all others" if self.include_other else ""
        return f"KeySet({len(self.keys)} keys{also})"


Keys: TypeAlias = HasKeys | Iterable[Label | Key] | None


def keys(source: object, *, columns: Sequence[str] = (), include_other: bool = False) -> KeySet:
    """Make a set of public group keys.

    Group keys must be public or discovered privately. Never list them by looking at the private
    data.

    Args:
        source: List of keys (values, or tuples of values with one for each grouping column); a
            release of `Table.discover_keys`; or a public table or file, with `columns`.
        columns: Columns of a public table that hold the keys. Leave it empty for a list or a
            release.
        include_other: Whether the rows of all keys that are not listed count in one last group,
            "(other)".

    Returns:
        A key set for the argument `keys` of queries.

    Raises:
        InvalidArgument: The source is no list of keys, release or public table.

    Examples:
        >>> from discreet import query
        >>> query.keys(["Berlin", "Paris"], include_other=True)
        KeySet(2 keys, and one group for all others)

    See Also:
        `Table.discover_keys`.
    """
    if names := (columns,) if isinstance(columns, str) else check.as_tuple("columns", columns):
        from discreet.data.public_tables import listed_keys  # noqa: PLC0415 - engines are slow to import

        return KeySet(
            keys=listed_keys(source, columns=names), key_columns=names, include_other=include_other
        )
    if isinstance(source, HasKeys):
        return KeySet(keys=source.keys, key_columns=source.key_columns, include_other=include_other)
    if isinstance(source, str) or not isinstance(source, Iterable):
        raise InvalidArgument("keys must be a list of keys, a release, or a table with columns=.")
    listed = check.as_tuple("keys", source)
    found = tuple(key if isinstance(key, tuple) else (key,) for key in listed)
    if not all(isinstance(label, Hashable) for key in found for label in key):
        raise InvalidArgument("keys must be values, or tuples of values: one for each of by.")
    return KeySet(keys=found, include_other=include_other)


def resolve_keys(given: Keys, *, names: tuple[str, ...]) -> KeySet | None:
    """The key set of a question that groups by ``names``."""
    if given is None:
        return None
    if not names:
        raise InvalidArgument("keys need by: the columns that they are values of.")
    found = given if isinstance(given, KeySet) else keys(given)
    if not found.keys:
        raise InvalidArgument("keys must name at least one group; a discovery may find none.")
    known = found.key_columns
    if known and len(known) == len(names) and known != names:
        raise InvalidArgument(f"keys are values of {list(known)}, by is {list(names)}.")
    return found
