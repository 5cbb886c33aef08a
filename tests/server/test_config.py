"""What a configuration may say; rates; what is asked too much at once."""

import json
from contextlib import suppress
from dataclasses import asdict

import pytest

from discreet.core.errors import InvalidArgument, PrivacyError
from discreet.server import config as configs
from discreet.server import plans as planning
from discreet.server.middleware import rate_limit as rates
from discreet.server.middleware.monitoring import ServerMetrics

TABLE = """
[[table]]
name = "{name}"
source = "people.csv"
limit = {{ epsilon = 3, delta = 1e-6 }}
[table.columns]
age = {{ kind = "integer", lower = 0, upper = 99 }}
income = {{ kind = "integer", lower = 0, upper = 9_999 }}
"""


@pytest.fixture
def read(tmp_path):
    """Reads a text as a configuration."""

    def made(text, name="people"):
        path = tmp_path / "serve.toml"
        path.write_text(text + TABLE.format(name=name))
        return configs.read(path)

    return made


def test_loopback_by_default(read):
    found = read("")
    assert (found.host, found.port) == ("127.0.0.1", 8337)
    assert found.loopback
    assert not found.secure
    assert found.url == "http://127.0.0.1:8337"


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.7", "[::]", "example.org"])
def test_plain_http_is_for_this_machine(read, host):
    with pytest.raises(InvalidArgument, match="plain HTTP"):
        read(f'[server]\naddress = "{host}:80"\nhosts = "data.example.org"')
    proxied = f'[server]\naddress = "{host}:80"\nproxy = "10.0.0.1"\n'
    assert read(f'{proxied}hosts = "data.example.org"').secure
    with pytest.raises(InvalidArgument, match="hosts"):
        read(proxied)


def test_a_certificate_and_its_key_go_together(read, tmp_path):
    (tmp_path / "cert.pem").write_text("")
    with pytest.raises(InvalidArgument, match="together"):
        read('[server]\ncertificate = "cert.pem"')
    with pytest.raises(InvalidArgument, match="does not exist"):
        read('[server]\ncertificate = "cert.pem"\nkey = "key.pem"')
    (tmp_path / "key.pem").write_text("")
    assert read('[server]\ncertificate = "cert.pem"\nkey = "key.pem"').url.startswith("https://")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[server]\nadress = 1", "adress"),
        ('[server]\naddress = "8080"', "HOST:PORT"),
        ('[server]\naddress = "127.0.0.1:99999"', "HOST:PORT"),
        ('[server]\nproxy = "everybody"', "proxy"),
        ('[server]\nproxy = "0.0.0.0/0"', "every address"),
        ('[server]\nproxy = ["10.0.0.1", "::/0"]', "every address"),
        ("[server]\nworkers = 0", "workers"),
        ("[rates]\nqueue = -1", "queue"),
        ("[rates]\nfun = 1", "fun"),
        ("not toml", "TOML"),
    ],
)
def test_errors_name_their_place(read, text, words):
    with pytest.raises(InvalidArgument, match=words):
        read(text)


@pytest.mark.parametrize("name", ["", "a/b", "../etc", "ä", "a b", "x" * 65])
def test_names_can_stand_in_an_address(read, name):
    with pytest.raises(InvalidArgument, match="name"):
        read("", name=name)


def test_names_of_hosts_are_compared_in_small_letters(read):
    assert read('[server]\nhosts = "Data.Example.org"').hosts == ("data.example.org",)


def test_secrets_are_not_shown(read):
    found = read('[server]\nledger = "postgresql://me:hunter2@db/x"')
    assert "hunter2" not in repr(found)


def test_a_bucket_empties_and_fills(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(rates.time, "monotonic", lambda: clock[0])
    rate = rates.RateLimit(per_second=2, burst=3)
    assert [rate.take("a") for _ in range(4)] == [0, 0, 0, 1]
    assert rate.take("b") == 0
    clock[0] = 0.5
    assert [rate.take("a") for _ in range(2)] == [0, 1]
    clock[0] = 100.0
    assert [rate.take("a") for _ in range(4)] == [0, 0, 0, 1]


def test_memory_of_callers_is_bounded(monkeypatch):
    monkeypatch.setattr(rates, "_MOST", 10)
    rate = rates.RateLimit(per_second=0.001, burst=1)
    for i in range(100):
        assert rate.take(str(i)) == 0
    assert rate.take("99") > 0
    assert len(rate._buckets) <= 10


@pytest.mark.parametrize(
    "statistic",
    [
        {"kind": "count", "by": ["age", "income"], "epsilon": 1},
        {"kind": "count", "by": ["age", "income"], "within": 5},
        {"kind": "ranges", "of": ["age", "income"], "epsilon": 1},
        {"kind": "ranges", "of": "income", "bins": 1_000_000, "epsilon": 1},
        {"kind": "median", "of": "income", "by": "age", "bins": 1000, "epsilon": 1},
    ],
)
def test_what_would_keep_a_worker_busy_is_refused(read, statistic):
    with pytest.raises(InvalidArgument, match="more than"):
        planning.price_request(read("").tables["people"], [statistic])


@pytest.mark.parametrize(
    "statistics",
    [
        [],
        "count",
        [5],
        ["count"],
        [None],
        [{}],
        [{"kind": "count"}] * 51,
        [{"kind": "count", "epsilon": float("nan")}],
        [{"kind": "count", "epsilon": "1e999"}],
        [{"kind": "count", "epsilon": 1, "by": [[["age"]]]}],
        [{"kind": "count", "epsilon": 1, "keys": {"file": "/etc/passwd", "columns": ["age"]}}],
        [{"kind": "ranges", "of": ["age"], "bins": {"age": "x"}, "epsilon": 1}],
        [{"kind": "quantiles", "of": "age", "q": {"a": 1}, "epsilon": 1}],
        [{"kind": "histogram", "of": "age", "edges": ["x", None], "epsilon": 1}],
    ],
)
def test_nonsense_is_refused_with_words(read, statistics):
    with pytest.raises(InvalidArgument):
        planning.price_request(read("").tables["people"], statistics)


def test_comparisons_are_the_forecast_at_other_amounts(read):
    table = read("").tables["people"]
    asked = [{"kind": "count", "epsilon": 0.5}]
    found = planning.plan(
        table, planning.price_request(table, asked), account=None, shown=None, compare=True
    )
    (one,) = found.statistics
    assert {p.amount: p.width for p in one.curve}[0.5] == one.width
    chosen = next(a for a in one.alternatives if a.chosen)
    assert (chosen.width, chosen.std) == (one.width, one.std)
    assert found.cost == 0.5
    assert not found.affordable


def test_metrics_count(read):
    del read
    seen = ServerMetrics()
    seen.begin()
    seen.end("GET", "/tables/{name}", 200, 0.03)
    seen.begin()
    seen.end("BREW\nEVIL", "(none)", 404, 3.0)
    text = seen.text(waiting=2)
    assert 'discreet_requests_total{method="GET",route="/tables/{name}",status="200"} 1' in text
    assert 'discreet_request_seconds_bucket{route="/tables/{name}",le="0.05"} 1' in text
    assert 'discreet_request_seconds_bucket{route="/tables/{name}",le="0.025"} 0' in text
    assert "EVIL" not in text
    assert "discreet_releases_waiting 2" in text


@pytest.mark.parametrize(
    "statistic",
    [
        {"kind": "count", "epsilon": 1, "within": 10**400},
        {"kind": "count", "epsilon": 10**400},
        {"kind": "count", "epsilon": 1e-320},
        {"kind": "count", "rho": 1e-320},
        {"kind": "ranges", "of": "age", "epsilon": 1e-300},
        {"kind": "ranges", "of": "age", "rho": 1e300},
        {"kind": "count", "epsilon": 1, "name": "half \ud800 of it"},
        {"kind": "mean", "of": "age", "epsilon": 1, "expected_rows": 10**400},
    ],
)
def test_extremes_are_answered_or_refused_with_words(read, statistic):
    table = read("").tables["people"]
    with suppress(PrivacyError):
        asked = planning.price_request(table, [statistic])
        found = planning.plan(table, asked, account=None, shown=None, compare=True)
        json.dumps(asdict(found), allow_nan=False).encode()
