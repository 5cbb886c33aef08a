"""What jedi, pyright, IPython and mypy offer after `discreet.`, `t.`, `t.mean(` and a release.

`python -m pytest tests/project/test_completion.py -s -m "slow or not slow"` prints the lists.
"""

import inspect
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import discreet
from discreet import Release, Table

ROOT = Path(__file__).parents[2]
START = 'import discreet\n\nt = discreet.table("people.csv", columns={})\n'
EDITED = ROOT / "edited.py"
"""A file that an editor has not saved yet."""


def attributes(owner):
    return {name for name in dir(owner) if not name.startswith("_")}


def arguments(function):
    return {name for name in inspect.signature(function).parameters if name != "self"}


# What is typed, and which names must be offered then.
LINES = {
    "discreet.": set(discreet.__all__),
    "discreet.query.": set(discreet.query.__all__),
    "t.": attributes(Table),
    "t.mean(": arguments(Table.mean) - {"value"} | {"epsilon", "delta", "rho", "label"},
    't.mean("age", epsilon=1).': attributes(Release),
    "discreet.laplace(": arguments(discreet.laplace),
}


def check(tool, line, offered):
    print(f"\n{tool}: {line}\n  {' '.join(sorted(name for name in offered if name[:1] != '_'))}")
    assert not LINES[line] - offered


@pytest.mark.parametrize("line", LINES)
def test_jedi(line):
    jedi = pytest.importorskip("jedi")
    project = jedi.Project(ROOT, added_sys_path=[str(ROOT / "src")])
    found = jedi.Script(START + line, path=EDITED, project=project).complete()
    check("jedi", line, {one.name.rstrip("=") for one in found})


@pytest.fixture(scope="module")
def shell():
    """IPython as a notebook runs it, after the first lines have been executed."""
    completer = pytest.importorskip("IPython.core.completer")
    rows = pytest.importorskip("polars").DataFrame({"age": [20, 30]})
    table = discreet.table(rows, columns={"age": discreet.integer(0, 120)})
    made = completer.IPCompleter(namespace={"discreet": discreet, "t": table})
    made.use_jedi = True
    # They need the prompt itself: commands of IPython, names of files.
    made.disable_matchers = ["IPCompleter.magic_matcher", "IPCompleter.file_matcher"]
    return made


@pytest.mark.filterwarnings("ignore::FutureWarning")  # IPython calls its completions provisional
@pytest.mark.parametrize("line", LINES)
def test_ipython(line, shell):
    found = shell.completions(line, len(line))
    check("IPython", line, {one.text.rstrip("=").rpartition(".")[2] for one in found})


class LanguageServer:
    """Pyright, asked as an editor asks: one file is open, and completed at a place."""

    def __init__(self, program, *, node):
        # Pyright asks the first `python` of PATH where packages are, unless a client that has a
        # folder and settings tells it which environment it works in. So that this is tested, and
        # not whether somebody has activated that environment, PATH holds Node.js alone.
        self.process = subprocess.Popen(
            [program, "--stdio"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env=os.environ | {"PATH": str(Path(node).parent)},
        )
        self.version = 0
        self.log = []
        # A server that hangs is stopped, and the test says what it had to say.
        self.limit = threading.Timer(900, self.process.kill)
        self.limit.start()
        folder = {"uri": ROOT.as_uri(), "name": "discreet"}
        able = {"workspace": {"configuration": True, "workspaceFolders": True}}
        self.ask("initialize", processId=None, workspaceFolders=[folder], capabilities=able)
        self.tell("initialized")

    def send(self, **message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def tell(self, method, **params):
        self.send(method=method, params=params)

    def ask(self, method, **params):
        self.version += 1
        asked = self.version
        self.send(id=asked, method=method, params=params)
        while True:
            message = self.receive()
            if message.get("id") == asked and "method" not in message:
                assert "error" not in message, message
                return message["result"]
            if message.get("method") == "workspace/configuration":
                sections = [item["section"] for item in message["params"]["items"]]
                self.send(id=message["id"], result=[SETTINGS.get(one) for one in sections])
            elif "id" in message:  # it wants to know of changed files, or to show progress
                self.send(id=message["id"], result=None)
            else:
                self.log.append(message)

    def receive(self):
        length = 0
        while header := self.process.stdout.readline().strip():
            name, _, value = header.partition(b":")
            length = int(value) if name == b"Content-Length" else length
        assert length, f"the language server has stopped: {self.log}"
        return json.loads(self.process.stdout.read(length))

    def complete(self, text):
        uri = EDITED.as_uri()
        document = {"uri": uri, "languageId": "python", "version": self.version, "text": text}
        self.tell("textDocument/didOpen", textDocument=document)
        place = {"line": text.count("\n"), "character": len(text.rpartition("\n")[2])}
        found = self.ask("textDocument/completion", textDocument={"uri": uri}, position=place)
        self.tell("textDocument/didClose", textDocument={"uri": uri})
        return [one["label"] for one in found["items"]]


SETTINGS = {
    "python": {"pythonPath": sys.executable},
    "python.analysis": {
        "autoImportCompletions": False,
        "diagnosticMode": "openFilesOnly",
        "extraPaths": [str(ROOT / "src")],
        "useLibraryCodeForTypes": True,
    },
}


@pytest.fixture(scope="module")
def pyright():
    pytest.importorskip("pyright")
    node = shutil.which("node")
    if not node:
        pytest.skip("pyright needs Node.js, and would download it: no `node` is installed")
    server = LanguageServer(Path(sys.executable).parent / "pyright-langserver", node=node)
    yield server
    server.limit.cancel()
    server.process.terminate()
    server.process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("line", LINES)
def test_pyright(line, pyright):
    found = {one.rstrip("=") for one in pyright.complete(START + line)}
    print(*pyright.log, sep="\n")
    check("pyright", line, found)


@pytest.mark.slow
@pytest.mark.lint
def test_mypy(tmp_path):
    """Mypy completes nothing; it knows the same names, and refuses others."""
    names = [f"discreet.{name}" for name in discreet.__all__]
    names += [f"t.{name}" for name in sorted(attributes(Table))]
    names += [f"r.{name}" for name in sorted(attributes(Release))]
    flags = ("sampling",)
    given = ", ".join(f"{name}={name not in flags and None}" for name in sorted(LINES["t.mean("]))
    text = [START, f'r: discreet.Release = t.mean("age", {given})', *names]
    script = tmp_path / "edited.py"
    script.write_text("\n".join([*text, "t.meen", "t.mean('age', epsilom=1)", ""]))
    done = subprocess.run(
        [Path(sys.executable).parent / "mypy", "--strict", script],
        capture_output=True,
        check=False,
        cwd=ROOT,
        text=True,
    )
    print(done.stdout)
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert len(errors) == 2, done.stdout
    assert '"meen"' in errors[0]
    assert '"epsilom"' in errors[1]
