"""Mechanisms of other installed packages, admitted if their certificate holds."""

from __future__ import annotations

from discreet.core._plugins import MECHANISMS, plugins
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.mechanisms.mechanism import Mechanism


def guest_mechanism(name: str, /, **settings: object) -> Mechanism:
    """Make a mechanism of another installed package, and check its guarantee.

    Packages name their mechanisms by entry points of the group `discreet.mechanisms`. The guarantee
    is recomputed from the exact distributions of the mechanism before you get it.

    Args:
        name: Name of the entry point.
        settings: Arguments of the mechanism.

    Returns:
        The mechanism.

    Raises:
        InvalidArgument: No installed package has a mechanism of this name.
        Unsupported: What the package makes is no mechanism of discreet. Charge its guarantee with
            `charge`, which marks it as claimed.
        NotCertified: The recomputed guarantee is worse than the stated one.

    Privacy:
        The certificate covers the stated distributions. Code of another package that draws from
        other distributions is not found by it: audit such a mechanism.

    Examples:
        >>> import discreet
        >>> discreet.interop.guest_mechanism("new noise")
        Traceback (most recent call last):
        ...
        discreet.core.errors.InvalidArgument: No installed package has a mechanism 'new noise'.

    See Also:
        [Other packages](../how-to/other-libraries.md), `discreet guests`.
    """
    point = plugins(MECHANISMS).get(name)
    if point is None:
        raise InvalidArgument(f"No installed package has a mechanism {name!r}.")
    made = point.load()(**settings)
    if not isinstance(made, Mechanism):
        raise Unsupported(
            f"{name!r} makes a {type(made).__name__}, which discreet cannot certify: charge its "
            "guarantee with discreet.interop.charge, which marks it as claimed."
        )
    made.certify().demand()
    return made
