"""What is shipped: the wheel and the source archive, built and used as a stranger would."""

import contextlib
import io
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import discreet

ROOT = Path(__file__).parents[2]
METADATA = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
JUNK = re.compile(r"__pycache__|\.pyc$|\.db$|^(build|dist|site|discreet-demo)/|/\.|~$")


def build(kind, folder, project=ROOT):
    """Call the backend as pip does; it says a lot, and needs the project's own folder."""
    code = f"from hatchling.build import build_{kind} as b; print(b({str(folder)!r}))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, cwd=project, text=True
    )
    return folder / done.stdout.split()[-1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build("wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def metadata(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        return Parser().parse(io.StringIO(archive.read(name).decode()))


def kept():
    """The files of the package as they stand in the tree."""
    found = (ROOT / "src").rglob("*")
    names = {path.relative_to(ROOT / "src").as_posix() for path in found if path.is_file()}
    return {name for name in names if not JUNK.search(name)}


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    described = {name for name in names if name.startswith("discreet-0.1.0.dist-info/")}
    assert names - described == kept()
    assert {Path(name).name for name in described} == {
        "METADATA",
        "WHEEL",
        "RECORD",
        "LICENSE",
        "entry_points.txt",
    }


@pytest.mark.parametrize(
    "name",
    [
        "__init__.pyi",
        "py.typed",
        "spec/demo_data/health.parquet",
        "spec/demo_data/health.toml",
        "server/static/htmx.min.js",
        "server/static/htmx.LICENSE",
        "server/static/style.css",
        "server/templates/frame.html",
    ],
)
def test_what_is_read_at_run_time_is_in_the_wheel(wheel, name):
    with zipfile.ZipFile(wheel) as archive:
        there = (ROOT / "src/discreet" / name).read_bytes()
        assert archive.read(f"discreet/{name}") == there


def test_the_version_is_said_once(metadata):
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert metadata["Version"] == discreet.__version__
    assert f"\nversion: {discreet.__version__}\n" in citation
    assert f"\nlicense: {metadata['License-Expression']}\n" in citation


def test_the_base_install_asks_for_little(metadata):
    needed = [text for text in metadata.get_all("Requires-Dist") if "extra ==" not in text]
    names = {re.split(r"[<>=~!\[; ]", text)[0] for text in needed}
    assert names == {"click", "duckdb", "narwhals", "numpy", "rich", "scipy"}


def test_every_python_that_is_claimed_is_allowed(metadata):
    claimed = [
        line.rpartition(" ")[2]
        for line in metadata.get_all("Classifier")
        if re.search(r":: 3\.\d+$", line)
    ]
    assert claimed[0] == metadata["Requires-Python"].removeprefix(">=")
    assert f"{sys.version_info.major}.{sys.version_info.minor}" in claimed


def test_the_source_archive_can_be_tested_and_documented(tmp_path):
    with tarfile.open(build("sdist", tmp_path)) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert not {name for name in names if JUNK.search(name)}
    assert {f"src/{name}" for name in kept()} <= names
    assert {
        "CITATION.cff",
        "LICENSE",
        "Makefile",
        "README.md",
        "conftest.py",
        "docs/index.md",
        "pyproject.toml",
        "requirements-dev.lock",
        "tests/conftest.py",
        "tests/project/test_package.py",
        "zensical.toml",
    } <= names


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The wheel alone in an environment of its own, beside the libraries of this one."""
    home = tmp_path_factory.mktemp("venv")
    venv.create(home, with_pip=False)
    own = Path(sysconfig.get_path("purelib", vars={"base": str(home)}))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(own)
    # Added at the end of the path, and without its .pth files: the checkout stays out of sight.
    (own / "libraries.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    return home / "bin" / "python"


@pytest.fixture
def empty(tmp_path):
    """A stranger's shell: an empty folder, a home that holds nothing, no settings of ours."""
    (tmp_path / "home").mkdir()
    (tmp_path / "here").mkdir()
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "DISCREET", "COVERAGE"))
    }
    return {"cwd": tmp_path / "here", "env": {**clean, "HOME": str(tmp_path / "home")}}


def run(installed, empty, *arguments):
    return subprocess.run(
        [installed, *arguments], capture_output=True, check=False, text=True, **empty
    )


@pytest.mark.slow
def test_the_demo_runs_from_the_wheel(installed, empty):
    where = run(installed, empty, "-c", "import discreet; print(discreet.__file__)")
    assert str(installed.parents[1]) in where.stdout
    done = run(installed, empty, "-m", "discreet", "demo")
    assert done.returncode == 0, done.stderr
    assert (empty["cwd"] / "discreet-demo" / "health.html").as_uri() in done.stdout
    assert sorted(path.name for path in empty["cwd"].iterdir()) == ["discreet-demo"]


@pytest.mark.slow
def test_a_study_runs_from_the_wheels(installed, empty, tmp_path_factory):
    studies = build("wheel", tmp_path_factory.mktemp("studies"), ROOT / "research")
    own = sysconfig.get_path("purelib", vars={"base": str(installed.parents[1])})
    with zipfile.ZipFile(studies) as archive:
        archive.extractall(own)
    done = run(installed, empty, "-m", "discreet", "study", "friis", "--quick")
    assert done.returncode == 0, done.stderr
    assert " 0 failed." in done.stdout
    assert list(empty["cwd"].iterdir()) == []


@pytest.mark.slow
def test_a_folder_that_cannot_be_written_is_refused_in_one_line(installed, empty):
    with contextlib.suppress(OSError):
        (empty["cwd"] / "discreet-demo").write_text("a file where the folder should be")
    done = run(installed, empty, "-m", "discreet", "demo")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "--folder" in done.stderr
