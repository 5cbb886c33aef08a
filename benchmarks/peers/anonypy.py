"""anonypy: k-anonymity by Mondrian, with pandas."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from anonypy import Preserver

from benchmarks.tasks import drop


def k_anonymity_local(*, n: int, k: int) -> Callable[[], None]:
    """Classes of at least k rows, each with its own ranges of age and postcode and set of sexes."""
    rng = np.random.default_rng(1)
    age = rng.integers(0, 100, n)
    postcode = rng.integers(0, 20_000, n)
    sex = rng.choice(["f", "m"], n)
    ill = rng.choice(["no", "yes"], n, p=[0.8, 0.2])
    frame = pd.DataFrame({"age": age, "postcode": postcode, "sex": sex, "ill": ill})
    frame = frame.astype({"sex": "category", "ill": "category"})
    work = Preserver(frame, ["age", "postcode", "sex"], "ill")
    return lambda: drop(work.anonymize_k_anonymity(k=k))
