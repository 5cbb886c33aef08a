"""Code of others that sees private rows: of one call, nothing reaches the next but its answer.

Estimators and functions may draw from the global generators of NumPy and Python, and how often may
depend on the rows. All calls after it would then see other random numbers.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


def draw_seed() -> int:
    """Return a number that NumPy's global generator draws, whatever the data are."""
    return int(np.random.randint(2**32, dtype=np.uint64))  # noqa: NPY002 - see above


@contextmanager
def alone(seed: int) -> Iterator[None]:
    """Give a call random numbers of its own, and let none of its warnings and settings out."""
    numpy_state, python_state = np.random.get_state(), random.getstate()  # noqa: NPY002
    try:
        np.random.seed(seed)  # noqa: NPY002
        random.seed(seed)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            yield
    finally:
        np.random.set_state(numpy_state)  # noqa: NPY002
        random.setstate(python_state)
