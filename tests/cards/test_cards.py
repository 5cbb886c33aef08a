"""Release cards: by their schema, true, refused when they were changed, and proved by others."""

import copy
import importlib.util
import json
import random
from fractions import Fraction
from pathlib import Path

import jsonschema_rs
import numpy as np
import pandas as pd
import pytest
import yaml
from click.testing import CliRunner
from sklearn.linear_model import LogisticRegression

import discreet
from discreet import audit, local, query
from discreet.audit.cases import broken
from discreet.cards import _schema
from discreet.cards._subjects import CardSubject
from discreet.cli.main import main
from discreet.core import events
from discreet.core.errors import InvalidArgument, RelationMismatch, Unsupported
from discreet.models import PrivateLinearRegression, pate
from discreet.tables._public_facts import column_facts

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "docs" / "how-to" / "check_card.py"
COLUMNS = {
    "age": discreet.integer(0, 120),
    "smokes": discreet.boolean(),
    "city": discreet.category(["a", "b"]),
}
ROWS = pd.DataFrame(
    {
        "id": [f"p{i // 2}" for i in range(400)],
        "age": [20 + i % 50 for i in range(400)],
        "smokes": [i % 3 == 0 for i in range(400)],
        "city": ["a", "b", "c", "a"] * 100,
    }
)


def people(relation=discreet.NeighboringRelation.ADD_REMOVE, unit="id", limit=None):
    limit = limit or discreet.approx_dp(100, 1e-5, relation=relation)
    account = discreet.Ledger("memory://").account("survey", limit=limit)
    rows = {"max_rows_per_unit": 3} if unit else {}
    return discreet.table(
        ROWS, columns=COLUMNS, privacy_unit=unit, account=account, relation=relation, **rows
    )


def several(table=None, **budget):
    table = table or people()
    asked = [
        query.count(by="city"),
        query.mean("age", by="city"),
        query.count(of="age", by="city"),
        query.quantiles("age", [0.5]),
        query.count(where=discreet.col("smokes"), name="smokers"),
    ]
    gaussian = {"epsilon": 1, "delta": 1e-6, "noise": "gaussian"}
    return list(table.release(asked, **(budget or gaussian)))


@pytest.fixture(scope="module")
def table():
    return people()


@pytest.fixture(scope="module")
def releases(table):
    return several(table)


@pytest.fixture(scope="module")
def card(table, releases):
    return discreet.card(releases, title="Survey", account=table.account)


def report(releases):
    return json.dumps(
        {
            "guarantee": json.loads(releases[0].receipt.guarantee.to_json()),
            "releases": [json.loads(one.to_json()) for one in releases],
            "ranges": [],
        }
    )


# ── What a card says ─────────────────────────────────────────────────────────────────────────────


def test_what_is_shared_is_charged_once_and_the_whole_is_what_the_account_paid(card, releases):
    assert card.guarantee == releases[0].receipt.guarantee
    shared = [query.mean("age"), query.variance("age")]
    both = list(people().release(shared, epsilon=1, delta=1e-6))
    found = discreet.card(both)
    uses = [one["measurements"] for one in found.content["statistics"]]
    assert len(found.content["measurements"]) < sum(map(len, uses))
    assert found.guarantee == both[0].receipt.guarantee


def test_a_card_holds_no_released_number(releases, card):
    noisy = [row["value"] for one in releases for row in one.rows() if row["value"] > 30]
    # A noisy count may be equal to a declared bound: what a card of other noise says is public.
    other = discreet.card(several(), title="Survey")
    own, public = (set(one.to_json().replace(",", " ").split()) for one in (card, other))
    assert noisy
    assert not [x for x in noisy if repr(x) in own - public]


def test_numbers_are_those_of_the_guarantee_rounded_up(card):
    stated, guarantee = card.content["privacy"], card.guarantee
    meaning = guarantee.meaning()
    for number, least in [
        (stated["epsilon"], guarantee.epsilon(1e-6)),
        (stated["attack"]["advantage"], meaning.advantage),
        (stated["attack"]["tpr"][1]["tpr"], meaning.true_positive_rate(0.001)),
    ]:
        assert Fraction(least) <= Fraction(number["text"]) <= Fraction(least) * (1 + 10**-11)
        assert float(number["text"]) == number["value"]


def test_deltas_are_written_as_they_were_asked_for():
    card = discreet.card(discreet.gaussian(sensitivity=1, rho=0.02), delta=1e-4)
    assert "epsilon at delta 0.0001 |" in card.to_markdown()
    assert repr(card).endswith(" at delta 0.0001)")
    assert "delta" not in repr(discreet.card(discreet.laplace(sensitivity=1, epsilon=0.5)))


def test_a_card_survives_its_json(card):
    assert discreet.ReleaseCard.from_json(card.to_json()) == card


def test_the_release_keeps_what_its_card_needs(releases):
    again = discreet.Release.from_json(releases[0].to_json())
    assert again.card().content["statistics"] == releases[0].card().content["statistics"]


def test_releases_of_before_have_cards_from_their_guarantee(releases):
    held = json.loads(releases[1].to_json())
    del held["facts"]
    old = discreet.Release.from_json(json.dumps(held))
    card = old.card()
    assert card.guarantee == old.guarantee
    assert card.verify().ok


def test_charged_looks_before_the_release_stand_on_the_card():
    table = people()
    table.count(epsilon=0.1, label="first look")
    made = table.mean("age", epsilon=0.1)
    card = discreet.card(made, account=table.account)
    assert [one["label"] for one in card.content["exploration"]] == ["first look"]
    assert card.verify(made.to_json(), account=table.account).ok


def audited():
    cases = [audit.mechanism_cases()[0], broken.cases()[0], coin()]
    return audit.run_audit(cases, samples=20_000)


def coin():
    """What no law is known of, at a delta where samples alone say something."""
    return audit.AuditCase(
        name="coin",
        claimed=(1, 0),
        draw=lambda value, n, seed: np.random.default_rng(seed).random(n) < 0.4 + value / 10,
        left=0,
        right=1,
    )


def kinds_of_things(tmp_path):
    table = people(limit=discreet.pure_dp(100))
    yield "histogram", table.count(by="city", epsilon=1)
    yield "ranges", table.ranges("age", epsilon=1)
    yield "tables", table.marginals(table.plan_marginals(1, epsilon=1))
    account = discreet.Ledger("memory://").account("model", limit=discreet.approx_dp(9, 1e-5))
    X = np.arange(200.0).reshape(-1, 1) % 10
    model = PrivateLinearRegression(
        epsilon=1, delta=1e-6, bounds=(0, 10), target_bounds=(0, 10), account=account
    )
    yield "regression", model.fit(X, X[:, 0])
    yield "local", local.CollectionSpec(randomizer=local.grr(categories=3, epsilon=1))
    yield "stream", discreet.stream(account=account, epsilon=1, horizon=24)
    teachers = pate.assign_upsampling(100, copies={"all": 1})
    guarantee = pate.ConfidentGNMax(threshold=60, sigma_threshold=20, sigma_votes=10).query_cost(
        teachers
    )
    yield "pate", pate.LabelRelease(labels=np.array([2, -1, 0]), guarantee=guarantee)
    replace = discreet.NeighboringRelation.REPLACE_ONE
    yield "audit", audited()
    yield "replace-one", people(replace, unit=None).mean("age", epsilon=1, delta=1e-6)


def test_every_kind_of_thing_has_a_card_by_the_schema_that_holds(tmp_path):
    validator = jsonschema_rs.Draft202012Validator(discreet.ReleaseCard.schema())
    seen = []
    for name, thing in kinds_of_things(tmp_path):
        card = discreet.card(thing)
        validator.validate(json.loads(card.to_json()))
        check = card.verify()
        assert check.ok, (name, check.problems)
        assert card.to_markdown()
        assert card.to_html()
        assert discreet.ReleaseCard.from_json(card.to_json()) == card
        if name != "audit":
            yaml.safe_load(card.to_registry())
        seen.append(name)
    assert len(seen) == 9


def test_what_has_no_guarantee_has_no_card():
    for thing in (7, LogisticRegression(), discreet.connect):
        with pytest.raises(Unsupported, match="has no guarantee"):
            discreet.card(thing)
    with pytest.raises(InvalidArgument, match="at least one release"):
        discreet.card([])


def test_relations_are_not_mixed(releases):
    replace = people(discreet.NeighboringRelation.REPLACE_ONE, unit=None).mean("age", epsilon=1)
    with pytest.raises(RelationMismatch, match="one neighboring relation"):
        discreet.card([releases[0], replace])


def test_words_of_a_person_are_known_words(releases):
    made = discreet.card(releases[0], person={"curator": "The health office"})
    assert made.content["person"]["curator"] == "The health office"
    with pytest.raises(InvalidArgument, match="'owner'"):
        discreet.card(releases[0], person={"owner": "me"})


def test_a_card_says_what_stands_for_a_missing_value_and_nothing_where_nothing_does():
    columns = {
        "a": discreet.integer(0, 9),
        "b": discreet.integer(0, 9, missing=4),
        "c": discreet.real(0, 9, granularity=0.5, missing=2.5),
        "d": discreet.boolean(),
        "e": discreet.boolean(missing=True),
    }
    facts = {name: column_facts(name, columns) for name in columns}
    stated = {name: one.get("missing") for name, one in facts.items()}
    assert stated == {"a": None, "b": 4, "c": 2.5, "d": None, "e": True}
    assert (facts["c"]["lower"], facts["c"]["upper"]) == (0, 9)


def test_what_a_person_pays_over_a_year_stands_on_the_card_and_is_checked():
    day = CardSubject(title="days", question="count", guarantee=discreet.gdp(Fraction(1, 10)))
    made = discreet.card(day, delta=1e-9, periods={"week": 7, "year": 365})
    stated = made.content["privacy"]["periods"]
    wanted = [discreet.gdp(0.1 * many**0.5).epsilon(1e-9) for many in (7, 365)]
    assert [one["epsilon"]["value"] for one in stated] == pytest.approx(wanted, rel=1e-6)
    assert made.verify().ok
    assert "a person over year" in made.to_markdown()
    forged = copy.deepcopy(dict(made.content))
    lower(forged["privacy"]["periods"][1]["epsilon"])
    (problem,) = discreet.ReleaseCard(forged).verify().problems
    assert problem.startswith("privacy.periods[1].epsilon")


# ── Tampering ────────────────────────────────────────────────────────────────────────────────────


def lower(number, factor=0.9):
    value = number["value"] * factor
    text = f"{value:.9f}"
    number.update(text=text, value=float(text))


def privacy(change):
    return lambda card: change(card["privacy"])


def drop_measurement(card):
    del card["measurements"][-1]


def drop_statistic(card):
    del card["statistics"][-1]


def higher_delta(card):
    card["privacy"]["delta"] = {"text": "0.00000001", "value": 1e-8}


def smaller_scale(card):
    part = card["statistics"][0]["noise"][0]
    part["variance"] = "1" + part["variance"]


def other_event(card):
    event = card["measurements"][0]["event"]
    event["variance"] = "9" + event["variance"]


def of_both(card):
    """The event is changed everywhere, as a careful forger would, and the numbers are not."""
    text = json.dumps(card)
    event = next(m["event"] for m in card["measurements"] if "variance" in m["event"])
    top, _, bottom = event["variance"].partition("/")
    smaller = f"{int(top) // 4}/{bottom or 1}"
    wrong = events.to_json(
        events.from_json(
            json.dumps({**event, "variance": str(Fraction(smaller))}).replace(
                str(Fraction(smaller)),
                f"{Fraction(smaller).numerator}/{Fraction(smaller).denominator}",
            )
        )
    )
    changed = json.loads(
        text.replace(f'"{event["variance"]}"', f'"{json.loads(wrong)["variance"]}"')
    )
    card.clear()
    card.update(changed)


TAMPERINGS = {
    "lower epsilon": (privacy(lambda p: lower(p["epsilon"])), "privacy.epsilon"),
    "lower epsilon at another delta": (
        privacy(lambda p: lower(p["epsilons"][2]["epsilon"])),
        "privacy.epsilons[2].epsilon",
    ),
    "smaller delta": (higher_delta, "privacy.epsilon"),
    "lower rho": (privacy(lambda p: lower(p["rho"])), "privacy.rho"),
    "a mu that is none": (
        privacy(lambda p: p.update(mu={"text": "0.1", "value": 0.1})),
        "privacy.mu",
    ),
    "lower advantage": (
        privacy(lambda p: lower(p["attack"]["advantage"])),
        "privacy.attack.advantage",
    ),
    "lower true positives": (
        privacy(lambda p: lower(p["attack"]["tpr"][1]["tpr"])),
        "privacy.attack.tpr[1].tpr",
    ),
    "no points of the curve": (privacy(lambda p: p["attack"].update(tpr=[])), "privacy.attack"),
    "stronger variant": (privacy(lambda p: p.update(variant="pure")), "privacy.variant"),
    "dropped measurement": (drop_measurement, "privacy.event"),
    "dropped statistic": (drop_statistic, "measurements"),
    "other event of a measurement": (other_event, "privacy.event"),
    "less noise in all events": (of_both, "privacy.epsilon"),
    "other variance in plain words": (smaller_scale, "statistics[0].noise[0].variance"),
    "lower epsilon of a statistic": (
        lambda c: lower(c["statistics"][1]["epsilon"]),
        "statistics[1].epsilon",
    ),
    "other relation": (
        privacy(lambda p: p.update(relation="REPLACE_ONE")),
        "privacy.relation",
    ),
    "other unit": (privacy(lambda p: p["unit"].update(columns=["visit"])), "privacy.unit.columns"),
    "more rows than the event allows": (
        lambda c: c["limits"].update(max_rows_per_unit=9),
        "statistics[0].limits",
    ),
    "other variance, and no sensitivity": (
        lambda c: [
            smaller_scale(c),
            [one["noise"][0].pop("sensitivity") for one in c["statistics"]],
        ],
        "statistics[0].noise[0].sensitivity",
    ),
    "a law of ours, and nothing else": (
        lambda c: c["statistics"][0].update(noise=[{"part": "count", "law": "discrete laplace"}]),
        "statistics[0].noise[0].sensitivity",
    ),
    "more rows than the event allows, and noise in words": (
        lambda c: [
            c["limits"].update(max_rows_per_unit=9),
            c["statistics"][0].update(noise=[{"part": "count", "law": "noise"}]),
        ],
        "statistics[0].limits",
    ),
    "more sensitivity than the event allows": (
        lambda c: c["statistics"][0]["noise"][0]["sensitivity"].update(l2_squared=10**6),
        "statistics[0].noise[0].sensitivity",
    ),
    "facts exact from the data": (
        lambda c: c["public"].append({"fact": "the largest age", "origin": "exact from the data"}),
        "public[3]",
    ),
    "a text that differs from its value": (
        privacy(lambda p: p["epsilon"].update(text="2.5")),
        "privacy.epsilon",
    ),
    "a claimed event as certified": (
        lambda c: c["measurements"][0].update(claimed_by="them"),
        "measurements[0].certified",
    ),
}


@pytest.mark.parametrize("name", TAMPERINGS)
def test_a_changed_card_is_refused_and_the_field_is_named(name, card):
    change, field = TAMPERINGS[name]
    content = copy.deepcopy(dict(card.content))
    change(content)
    found = discreet.ReleaseCard(content).verify()
    assert not found.ok
    assert any(one.startswith(field) for one in found.problems), found.problems


@pytest.fixture(scope="module")
def audit_card():
    return discreet.card(audited(), title="Three mechanisms")


def case(place, *path, **changed):
    """A change of one case, or of a block in it."""

    def change(content):
        held = content["cases"][place]
        for name in path:
            held = held[name]
        held.update(changed)

    return change


def stated(value):
    return {"text": f"{value:.9f}", "value": float(f"{value:.9f}")}


AUDIT_TAMPERINGS = {
    "more confidence": (lambda c: c.update(failure_probability=stated(1e-7)), "failure_prob"),
    "nothing left open": (lambda c: c.update(not_proved=[]), "not_proved"),
    "no case": (lambda c: c.update(cases=[]), "cases"),
    "a broken one that holds": (
        case(1, verdict="holds", demonstration=False),
        "cases[1].verdict",
    ),
    "a broken one that is not refuted": (
        case(1, verdict="not refuted", demonstration=False),
        "cases[1].verdict",
    ),
    "a demonstration that is none": (case(1, demonstration=False), "cases[1].verdict"),
    "caught, and no attack": (case(1, "attack", refuted=None), "cases[1].attack.refuted"),
    "a smaller claim": (case(0, "claimed", epsilon=stated(0.5)), "cases[0].verdict"),
    "no exact law, and it holds": (case(0, exact=None), "cases[0].verdict"),
    "an exact law upside down": (case(0, "exact", lower=stated(9)), "cases[0].exact"),
    "a certificate that failed": (case(0, certified=False), "cases[0].verdict"),
    "a stronger attack": (case(0, "attack", epsilon=stated(9)), "cases[0].attack.epsilon"),
    "a hidden attack": (case(1, "attack", epsilon=stated(0)), "cases[1].attack.epsilon"),
    "an event that is sure": (case(0, "attack", at_least=stated(1)), "cases[0].attack.at_least"),
    "an event that never is": (case(0, "attack", at_most=stated(0)), "cases[0].attack.at_most"),
    "a refuted claim that was not": (
        case(1, "attack", "refuted", epsilon=stated(5)),
        "cases[1].attack.refuted",
    ),
    "a text that differs": (
        case(2, "claimed", epsilon={"text": "2", "value": 1.0}),
        "cases[2].claimed.epsilon",
    ),
}


@pytest.mark.parametrize("name", AUDIT_TAMPERINGS)
def test_a_changed_card_of_an_audit_is_refused_and_the_field_is_named(name, audit_card):
    change, field = AUDIT_TAMPERINGS[name]
    content = copy.deepcopy(dict(audit_card.content))
    change(content)
    problems = discreet.ReleaseCard(content).verify().problems
    assert any(one.startswith(field) for one in problems), problems


def test_a_card_of_an_audit_says_what_was_found_and_what_that_does_not_prove(audit_card, tmp_path):
    verdicts = [one["verdict"] for one in audit_card.content["cases"]]
    assert verdicts == ["holds", "BROKEN", "not refuted"]
    for row, one in zip(audited(), audit_card.content["cases"], strict=True):
        # What was proved is rounded down, what is allowed is rounded up.
        assert Fraction(one["attack"]["epsilon"]["text"]) <= Fraction(row.attacked.epsilon)
        assert Fraction(one["attack"]["at_most"]["text"]) >= Fraction(row.attacked.at_most)
    assert repr(audit_card).endswith("audit, 1 holds, 1 BROKEN, 1 not refuted)")
    page = audit_card.to_markdown()
    assert page.startswith("# Audit card: Three mechanisms")
    assert "at most 1e-06" in page
    assert "An attack that finds nothing proves nothing" in page
    made = audit_card.save(tmp_path / "audit.json")
    assert run("verify", made).exit_code == 0
    shown = run("card", made, "--format", "markdown")
    assert shown.output.startswith("# Audit card")
    content = copy.deepcopy(dict(audit_card.content))
    content["cases"][1].update(verdict="holds", demonstration=False)
    made.write_text(json.dumps(content), encoding="utf-8")
    assert "the claim was refuted" in run("verify", made).output
    assert run("verify", made).exit_code == 1


def test_a_card_of_an_audit_promises_nothing(audit_card, releases, table):
    with pytest.raises(Unsupported, match="promises nothing"):
        _ = audit_card.guarantee
    with pytest.raises(Unsupported, match="no deployment"):
        audit_card.to_registry()
    with pytest.raises(InvalidArgument, match="no release and no account"):
        audit_card.verify(account=table.account)
    with pytest.raises(InvalidArgument, match="an audit or about releases"):
        discreet.card([*audited(), releases[0]])
    with pytest.raises(InvalidArgument, match="takes a title"):
        discreet.card(audited(), delta=1e-6)


def test_the_audit_command_writes_its_card(tmp_path, monkeypatch):
    monkeypatch.setattr("discreet.cli.audit.run_audit", lambda *_, **__: audited())
    made = tmp_path / "audit.json"
    assert run("audit", "laplace", "--json", "--card", made).exit_code == 0
    card = discreet.ReleaseCard.from_json(made.read_text(encoding="utf-8"))
    assert card.verify().ok


UNREADABLE = {
    "NaN": ('"value": 1.0', '"value": NaN', "NaN"),
    "a number beyond a double": ('"value": 1.0', '"value": 1e400', "beyond a double"),
    "a key twice": ('"discreet_card": 1', '"discreet_card": 1, "discreet_card": 1', "twice"),
    "an unknown field": ('"discreet_card": 1', '"discreet_card": 1, "safe": true', "safe"),
    "another version": ('"discreet_card": 1', '"discreet_card": 2', "discreet_card"),
    "true for one": ('"discreet_card": 1', '"discreet_card": true', "discreet_card"),
    "a short hash": ('"hash": "', '"hash": "zz', "hash"),
    "a negative number": ('"text": "', '"text": "-', "text"),
    "no time": ('"time": "2', '"time": "x', "time"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_is_no_card_is_refused_and_named(name, card):
    old, new, word = UNREADABLE[name]
    text = card.to_json()
    text = text.replace('"value": 0.999', '"value": 1.0, "was": 0.999') if old not in text else text
    assert old in text
    with pytest.raises(InvalidArgument, match=word):
        discreet.ReleaseCard.from_json(text.replace(old, new, 1))


def test_our_reading_of_the_schema_agrees_with_a_validator(card, audit_card):
    validator = jsonschema_rs.Draft202012Validator(discreet.ReleaseCard.schema())
    draw = random.Random(1)
    strange = [None, True, 7, -1, 2.5, "x", "", [], {}, [1], {"a": 1}, 0, "1e5", "2026-01-01"]
    wrong = 0
    for turn in range(600):
        content = copy.deepcopy(dict((audit_card if turn % 4 == 0 else card).content))
        place = content
        while True:
            key = draw.choice(list(place) if isinstance(place, dict) else range(len(place)))
            if isinstance(place[key], dict | list) and place[key] and draw.random() < 0.8:
                place = place[key]
                continue
            if isinstance(place, dict) and draw.random() < 0.2:
                del place[key]
            else:
                place[key] = draw.choice(strange)
            break
        ours, theirs = not _schema.problems(content), validator.is_valid(content)
        if key == "time":  # formats are words for people there
            continue
        assert ours == theirs, (key, place)
        wrong += not ours
    assert wrong > 100


# ── Against the release and the ledger ───────────────────────────────────────────────────────────


def test_a_card_fits_its_release_and_its_ledger_entry(card, releases, table):
    assert card.verify(report(releases), account=table.account).ok


def test_a_card_of_another_release_is_refused(card, table):
    found = card.verify(report(several(people(), epsilon=2)))
    assert any(one.startswith("privacy.event") for one in found.problems)
    again = card.verify(report(several(table)))
    assert any(one.startswith("ledger.hash") for one in again.problems)


def test_an_edited_hash_or_limit_is_refused(card, table):
    content = copy.deepcopy(dict(card.content))
    content["ledger"]["hash"] = "0" * 64
    content["ledger"]["limit"]["epsilon"] = {"text": "1", "value": 1.0}
    found = discreet.ReleaseCard(content).verify(account=table.account).problems
    assert [one.partition(":")[0] for one in found] == ["ledger.hash", "ledger.limit.epsilon"]


def test_a_card_that_hides_a_charge_or_names_one_that_paid_less_is_refused():
    table = people()
    look = table.count(epsilon=1)
    small = table.count(by="city", epsilon=0.5)
    large = people().count(by="city", epsilon=5)
    honest = discreet.card(small, account=table.account)
    assert honest.verify(account=table.account).ok
    assert discreet.card([small, look], account=table.account).verify(account=table.account).ok
    opening = table.account.history[0]

    def problems(content=honest.content, **changed):
        forged = copy.deepcopy(dict(content))
        forged["ledger"].update(changed.pop("ledger", {}))
        forged["privacy"].update(changed.pop("privacy", {}))
        found = discreet.ReleaseCard({**forged, **changed}).verify(account=table.account).problems
        return [one.partition(":")[0] for one in found]

    assert problems() == []
    assert problems(exploration=[]) == ["exploration"]
    lighter = [{**honest.content["exploration"][0], "event": honest.content["privacy"]["event"]}]
    assert problems(exploration=lighter) == ["exploration[0].event"]
    delta = {"delta": honest.content["ledger"]["limit"]["delta"]}
    assert problems(ledger={"limit": delta}) == ["ledger.limit.epsilon"]
    assert problems(ledger={"sequence": 1, "hash": opening.hash}) == ["ledger.sequence"]
    mine = {name: honest.content["ledger"][name] for name in ("account", "sequence", "hash")}
    heavy = discreet.card(large).content
    for fixed in (True, False):
        privacy = {"fixed_in_advance": fixed}
        assert problems(heavy, ledger=mine, privacy=privacy) == ["ledger"], fixed


def test_a_unit_that_was_changed_everywhere_is_found_by_the_release(card, releases):
    text = card.to_json().replace("any one id", "any one visit")
    content = json.loads(text)
    content["privacy"]["unit"]["columns"] = ["visit"]
    forged = discreet.ReleaseCard(content)
    assert forged.verify().ok  # nothing on the card itself contradicts it
    assert any(one.startswith("privacy.unit") for one in forged.verify(report(releases)).problems)


def test_ten_thousand_statistics_verify():
    relation = discreet.NeighboringRelation.ADD_REMOVE
    laws = [events.DiscreteGaussianEvent(10**6 + i, 1, 5) for i in range(5)]
    made = [
        CardSubject(title=f"s{i}", question="q", guarantee=discreet.Guarantee(law, relation))
        for i, law in enumerate(laws * 2000)
    ]
    card = discreet.card(made)
    assert card.verify().ok
    assert len(card.content["statistics"]) == 10_000


# ── For people and registries ────────────────────────────────────────────────────────────────────


def test_the_registry_record_is_complete_but_for_six_fields(card):
    text = card.to_registry()
    record = yaml.safe_load(text)
    assert text.count("to be written by a person") == 6
    blocks = "product dp_flavor privacy_loss model accounting implementation resources"
    assert list(record["deployment"]) == blocks.split()
    assert record["deployment"]["privacy_loss"]["privacy_parameters"]["epsilon"] == pytest.approx(
        1, 1e-3
    )


def test_words_of_people_cannot_leave_their_cell():
    hostile = 'x: y"\n- injected: <script>|` #\u2028'
    card = discreet.card(local.grr(categories=2, epsilon=1), title=hostile)
    record = yaml.safe_load(card.to_registry())
    assert record["deployment"]["product"]["name"] == hostile
    assert "<script>" not in card.to_html()
    assert "\n- injected" not in card.to_markdown()


def test_pages_follow_the_order_of_the_standard(card):
    parts = [line[3:] for line in card.to_markdown().splitlines() if line.startswith("## ")]
    assert parts == [
        "Unit of privacy and epsilon",
        "Variant of differential privacy",
        "Algorithms",
        "Utility and bias",
        "Trust model",
        "Security",
        "Data collection",
        "What is not covered",
    ]


def test_facts_from_the_data_are_printed_in_red(card):
    content = copy.deepcopy(dict(card.content))
    content["public"].append({"fact": "the largest age", "origin": "exact from the data"})
    wrong = discreet.ReleaseCard(content)
    assert "color:#b00020" in wrong.to_html()
    assert "NOT PROTECTED" in wrong.to_markdown()


# ── The script that knows nothing of discreet ────────────────────────────────────────────────────


def script():
    made = importlib.util.spec_from_file_location("check_card", SCRIPT)
    module = importlib.util.module_from_spec(made)
    made.loader.exec_module(module)
    return module


def test_the_script_is_short_and_independent():
    text = SCRIPT.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 100
    assert "discreet" not in text.partition('"""')[2].partition('"""')[2]


def random_events(draw):
    found = []
    for _ in range(draw.randint(1, 6)):
        kind = draw.randrange(6)
        scale = Fraction(draw.randint(5, 400), draw.randint(1, 9))
        found.append(
            [
                lambda s: events.DiscreteLaplaceEvent(s, draw.randint(1, 3)),
                lambda s: events.DiscreteGaussianEvent(s + 30, draw.randint(1, 9), 4),
                lambda s: events.DiscreteGaussianEvent(s, 1, 1),
                lambda s: events.GaussianEvent(s),
                lambda s: events.PureEvent(1 / s),
                lambda s: events.BoundedRangeEvent(1 / s),
            ][kind](scale)
        )
    return [one for one in found for _ in range(draw.choice([1, 1, 2, 7]))]


@pytest.mark.parametrize("many", [8, pytest.param(50, marks=pytest.mark.slow)])
def test_the_script_agrees_on_random_releases(many):
    check, draw = script(), random.Random(29)
    for _ in range(many):
        event = events.compose(random_events(draw))
        made = CardSubject(
            title="t",
            question="q",
            guarantee=discreet.Guarantee(event, discreet.NeighboringRelation.ADD_REMOVE),
        )
        content = json.loads(discreet.card(made, delta=1e-6).to_json())
        parts = [p for m in content["measurements"] for p in check.leaves(m["event"])]
        stated, proved = content["privacy"]["epsilon"]["value"], check.epsilon(parts, 1e-6)
        assert stated <= proved * (1 + 1e-6)
        # A choice by rank counts as randomized response there, its worst case.
        assert proved <= stated * (1.35 if "bounded_range" in str(parts) else 1.06), event


def test_the_script_proves_more_than_a_forged_card_says(card, tmp_path, monkeypatch):
    content = copy.deepcopy(dict(card.content))
    lower(content["privacy"]["epsilon"])
    path = tmp_path / "card.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    check = script()
    parts = [p for m in content["measurements"] for p in check.leaves(m["event"])]
    proved = check.epsilon(parts, 1e-6)
    assert card.content["privacy"]["epsilon"]["value"] <= proved * (1 + 1e-6)
    assert proved > content["privacy"]["epsilon"]["value"] * 1.05


# ── The commands ─────────────────────────────────────────────────────────────────────────────────


def run(*arguments):
    return CliRunner().invoke(main, [str(one) for one in arguments])


def test_the_commands_write_and_verify(card, releases, tmp_path):
    made, held, schema = (tmp_path / name for name in ("c.json", "r.json", "s.json"))
    made.write_text(card.to_json(), encoding="utf-8")
    held.write_text(report(releases), encoding="utf-8")
    assert run("verify", made, "--release", held).exit_code == 0
    assert run("verify", made, "--json").output.startswith('{"ok": true')
    for kind in ("markdown", "html", "registry", "json"):
        assert run("card", made, "--format", kind, "--person", "region=X").exit_code == 0
    assert run("card", held, "--title", "Again", "--output", tmp_path / "again.json").exit_code == 0
    assert run("verify", tmp_path / "again.json", "--release", held).exit_code == 0
    assert run("card", "--format", "schema", "--output", schema).exit_code == 0
    assert json.loads(schema.read_text(encoding="utf-8")) == discreet.ReleaseCard.schema()
    assert "add or remove one unit" in run("explain", made).output


def test_the_command_names_what_is_wrong(card, tmp_path):
    made = tmp_path / "c.json"
    made.write_text(card.to_json().replace('"rho": {', '"rho": {"text": "0.0",', 1), "utf-8")
    found = run("verify", made)
    assert found.exit_code == 1
    assert "'text' stands twice" in found.output
