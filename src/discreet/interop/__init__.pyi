from discreet.interop.claims import ClaimedRelease as ClaimedRelease
from discreet.interop.claims import charge as charge
from discreet.interop.events import from_dp_event as from_dp_event
from discreet.interop.events import from_opacus as from_opacus
from discreet.interop.events import from_opendp as from_opendp
from discreet.interop.events import to_dp_event as to_dp_event
from discreet.interop.mechanisms import guest_mechanism as guest_mechanism

__all__ = [
    "ClaimedRelease",
    "charge",
    "from_dp_event",
    "from_opacus",
    "from_opendp",
    "guest_mechanism",
    "to_dp_event",
]
