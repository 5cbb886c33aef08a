"""The estimator for levels: limits kept, refusals before paying, better than the strictest."""

import numpy as np
import pytest
from sklearn.base import clone

import discreet
from discreet.core.errors import InvalidArgument, NotCertified, RelationMismatch
from discreet.core.relation import NeighboringRelation
from discreet.models.dp_sgd import PersonalizedLogisticRegression, PrivateLogisticRegression
from discreet.noise.random_source import seeded_rng

LIMITS = {"open": discreet.approx_dp(3, 1e-6), "strict": discreet.approx_dp(0.3, 1e-6)}


def data(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 3))
    y = (rng.random(n) < 1 / (1 + np.exp(-8 * x[:, 0] + 4 * x[:, 1]))).astype(int)
    return x, y, np.where(np.arange(n) % 2, "open", "strict")


def model(**changes):
    usual = {
        "limits": LIMITS,
        "people": {"open": 1000, "strict": 1000},
        "bounds": (-1, 1),
        "classes": (0, 1),
        "steps": 40,
        "rng": seeded_rng(3),
    }
    return PersonalizedLogisticRegression(**{**usual, **changes})


@pytest.mark.parametrize("way", ["sampling", "clipping"])
def test_every_level_keeps_its_limit_and_uses_it(way):
    x, y, levels = data()
    fitted = model(method=way).fit(x, y, privacy_levels=levels)
    spent = fitted.personal_guarantee_.epsilons(1e-6)
    assert 0.97 * 3 < spent["open"] <= 3
    assert 0.97 * 0.3 < spent["strict"] <= 0.3
    assert fitted.guarantee_.epsilon(1e-6) == pytest.approx(spent["open"], rel=1e-3)
    assert fitted.score(x, y) > 0.8
    assert fitted.predict_proba(x).shape == (len(x), 2)
    assert {check.part for check in fitted.certify().checks} >= {"level open", "level strict"}


def test_personal_budgets_beat_the_strictest_for_all():
    x, y, levels = data()
    own, strictest = [], []
    for seed in range(5):
        limits = {**LIMITS, "strict": discreet.approx_dp(0.03, 1e-6)}
        own.append(
            model(limits=limits, rng=seeded_rng(seed)).fit(x, y, privacy_levels=levels).score(x, y)
        )
        plain = PrivateLogisticRegression(
            epsilon=0.03,
            delta=1e-6,
            bounds=(-1, 1),
            classes=(0, 1),
            public_rows=2000,
            steps=40,
            rng=seeded_rng(seed),
        )
        strictest.append(plain.fit(x, y).score(x, y))
    assert np.mean(own) > np.mean(strictest) + 0.01


def test_the_account_is_charged_for_the_most_generous(tmp_path):
    x, y, levels = data(200)
    with discreet.Ledger(f"sqlite:///{tmp_path}/b.db") as ledger:
        account = ledger.account("fit", limit=discreet.approx_dp(4, 1e-5))
        people = {"open": 100, "strict": 100}
        with pytest.raises(NotCertified):
            model(account=account, people=people).fit(x, y, privacy_levels=levels)
        assert not any(entry.kind == "reserve" for entry in account.history)
        fitted = model(account=account, people=people, rng=None).fit(x, y, privacy_levels=levels)
        assert fitted.receipt_.account == "fit"
        assert account.spent.epsilon(1e-6) == pytest.approx(fitted.guarantee_.epsilon(1e-6))


def test_what_is_refused():
    x, y, levels = data(20)
    with pytest.raises(InvalidArgument, match="levels must be given"):
        model().fit(x, y)
    with pytest.raises(InvalidArgument, match="one level for each row"):
        model().fit(x, y, privacy_levels=levels[:3])
    with pytest.raises(InvalidArgument, match="same levels"):
        model(people={"open": 3}).fit(x, y, privacy_levels=levels)
    with pytest.raises(InvalidArgument, match="epsilon must stay unset"):
        model(epsilon=1).fit(x, y, privacy_levels=levels)
    with pytest.raises(InvalidArgument, match="max_rows_per_unit"):
        model(max_rows_per_unit=2).fit(x, y, privacy_levels=levels)
    with pytest.raises(RelationMismatch):
        model(relation=NeighboringRelation.REPLACE_ONE).fit(x, y, privacy_levels=levels)


def test_a_clone_is_unfitted_and_has_the_same_parameters():
    one = clone(model(method="clipping"))
    assert one.get_params(deep=False)["method"] == "clipping"
    assert one.limits == LIMITS
    assert not hasattr(one, "theta_")
