"""anjana: k-anonymity by full-domain generalization, greedily, with pandas."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable

import numpy as np
import pandas as pd
from anjana.anonymity import k_anonymity as anonymized


def k_anonymity(*, n: int, k: int) -> Callable[[], None]:
    """Levels of age, postcode and sex until every class has k rows, up to 1 % left out."""
    rng = np.random.default_rng(1)
    age = rng.integers(0, 100, n)
    postcode = np.array([f"{code:05d}" for code in rng.integers(0, 20_000, n)])
    sex = rng.choice(["f", "m"], n)
    ill = rng.choice(["no", "yes"], n, p=[0.8, 0.2])
    frame = pd.DataFrame({"age": age, "postcode": postcode, "sex": sex, "ill": ill})
    ages, codes = np.arange(100), np.unique(postcode)
    bins = {level: ages // width * width for level, width in enumerate((5, 10, 20), start=1)}
    starts = {level: [code[:keep] for code in codes] for level, keep in enumerate((4, 3, 2, 1), 1)}
    hierarchies = {
        "age": {0: ages, **{i: [f"{low}+" for low in bins[i]] for i in bins}, 4: ["*"] * 100},
        "postcode": {0: codes, **starts, 5: ["*"] * len(codes)},
        "sex": {0: np.array(["f", "m"]), 1: ["*", "*"]},
    }

    def work() -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            anonymized(frame, [], ["age", "postcode", "sex"], k, 1, hierarchies)

    return work
