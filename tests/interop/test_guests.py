"""An example package of others, built and installed for real, adds to discreet and is named."""

import os
import shutil
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import discreet
from discreet.core import _plugins
from discreet.core.errors import NotCertified

HERE = Path(__file__).parent / "guest"
PROGRAM = """
import warnings
import discreet
from discreet import interop
from discreet.audit.runner import suites
from discreet.core.errors import Unsupported

account = discreet.Ledger("memory://").account("a", limit=discreet.pure_dp(2))
table = discreet.table(
    "acme://400", columns={"x": discreet.integer(0, 9)}, privacy_unit="person",
    max_rows_per_unit=1, account=account,
)
release = table.count(epsilon=1)
assert abs(release.value - 400) < 40
noise = interop.guest_mechanism("acme-noise", epsilon=1)
assert noise.guarantee.epsilon() == 1
try:
    interop.guest_mechanism("acme-foreign")
except Unsupported as refusal:
    print(refusal)
print([case.name for suite in suites() for case in suite.cases() if "acme" in case.name])
from discreet.report.release_report import ReleaseReport, as_html
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    page = as_html(ReleaseReport(
        title="t", releases=(release,), guarantee=release.guarantee, account="a"
    ))
assert "Notes of &lt;Acme&gt;" in page and "1 numbers &amp; &lt;b&gt;more&lt;/b&gt;" in page
assert "<b>more" not in page
print([str(one.message) for one in caught])
"""


@pytest.mark.slow
def test_an_example_package_is_installed_and_used(tmp_path):
    source, target = tmp_path / "source", tmp_path / "installed"
    shutil.copytree(HERE, source)
    offline = ["--no-deps", "--no-build-isolation", "--no-index", "--quiet"]
    install = [sys.executable, "-m", "pip", "install", *offline, "--target", str(target)]
    subprocess.run([*install, str(source)], check=True, capture_output=True, timeout=120)
    path = os.pathsep.join([str(target), *sys.path])
    more = {"env": os.environ | {"PYTHONPATH": path}, "text": True, "timeout": 120}
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=False, **more)
    assert run.returncode == 0, run.stderr
    foreign, cases, warned = run.stdout.strip().splitlines()
    assert foreign.endswith("interop.charge, which marks it as claimed.")
    assert cases == "['acme noise']"
    assert warned.count("'broken-notes' of the package acme-privacy") == 1
    for command, says in (("acme-hello", "hello from acme"), ("guests", "acme-privacy 1.2")):
        shown = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "discreet", command],
            capture_output=True,
            check=True,
            **more,
        )
        assert says in shown.stdout


def offered(monkeypatch, group, name, value):
    """As if a package offered this; what it names is an attribute of this module."""
    point = EntryPoint(name=name, value=f"{__name__}:{value}", group=group)
    monkeypatch.setattr(
        _plugins, "entry_points", lambda *, group: [point] if point.group == group else []
    )


def fails(*_, **__):
    raise ValueError("secret row 17")


def lies(**_):
    """A mechanism that states less than it costs."""
    kind = type(discreet.laplace(sensitivity=1, epsilon=2))

    class Lying(kind):
        guarantee = property(lambda self: discreet.pure_dp(1))

    made = discreet.laplace(sensitivity=1, epsilon=2)
    object.__setattr__(made, "__class__", Lying)
    return made


def test_a_mechanism_whose_certificate_fails_is_refused(monkeypatch):
    offered(monkeypatch, "discreet.mechanisms", "liar", "lies")
    with pytest.raises(NotCertified):
        discreet.interop.guest_mechanism("liar")


def test_a_source_that_fails_says_nothing_of_the_rows(monkeypatch):
    offered(monkeypatch, "discreet.sources", "bad", "fails")
    with pytest.raises(discreet.PrivacyError) as error:
        discreet.table("bad://user:secret@host", columns={}, budget=1)
    assert "secret" not in str(error.value)


def test_what_cannot_be_imported_is_named_and_left_out(monkeypatch):
    offered(monkeypatch, "discreet.sources", "gone", "nothing_of_this_name")
    with pytest.warns(RuntimeWarning, match="'gone' of the package tests"):
        assert [one.loads for one in _plugins.guests()] == [False]
    with (
        pytest.warns(RuntimeWarning, match="is left out: AttributeError"),
        pytest.raises(discreet.InvalidArgument, match="discreet guests"),
    ):
        discreet.table("gone://x", columns={}, budget=1)
