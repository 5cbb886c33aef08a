from discreet.interop.claims import ClaimedRelease as ClaimedRelease
from discreet.interop.claims import charge as charge
from discreet.interop.events import from_dp_event as from_dp_event
from discreet.interop.events import from_opacus as from_opacus
from discreet.interop.events import from_opendp as from_opendp
from discreet.interop.events import to_dp_event as to_dp_event

__all__ = [
    "ClaimedRelease",
    "charge",
    "from_dp_event",
    "from_opacus",
    "from_opendp",
    "to_dp_event",
]
