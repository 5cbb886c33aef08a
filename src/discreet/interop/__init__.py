"""Events and measurements of other libraries, read and charged as claimed.

discreet accounts for what dp-accounting, Opacus and OpenDP state. It does not see what they draw,
so their releases are marked "claimed, not certified" in the ledger and on cards.
"""

from discreet.core._lazy_import import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
