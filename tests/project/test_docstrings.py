"""Public names are documented where a user looks: by `help()`, by an editor, in the reference.

`python tests/project/test_docstrings.py [PREFIX]` prints what is missing, by module.
"""

import ast
import enum
import functools
import importlib
import inspect
import re
import sys
import textwrap
import typing
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import discreet
from discreet.local.randomizer import LocalRandomizer
from discreet.mechanisms.mechanism import Mechanism

ROOT = Path(__file__).parents[2]

# A summary of a function or method starts with one of these.
VERBS = frozenset(
    re.findall(
        r"\w+",
        """
    Accept Account Accumulate Adapt Add Aggregate Allocate Allow Analyze Answer Append Apply
    Approximate Ask Assess Assign Attack Audit Average Balance Begin Bin Bind Bootstrap Bound
    Bracket Bring Build Calculate Calibrate Call Certify Change Charge Check Choose Clamp Clip Clone
    Close Coarsen Code Collect Combine Compare Compose Compute Connect Continue Contrast Convert
    Copy Correct Correlate Count Cover Create Cut Debias Declare Decode Decrease Delete Denote
    Derive Describe Design Detect Determine Diagnose Discard Discover Display Divide Draw Drop
    Enclose Encode End Enter Enumerate Estimate Evaluate Exchange Exclude Expand Explain Export
    Express Extend Extract Feed Filter Find Finish Fit Fix Forecast Form Format Generalize Generate
    Get Give Group Hash Hide Improve Include Increase Insert Inspect Integrate Interpolate Invert
    Iterate Join Keep Label Learn Leave Let Limit List Load Log Look Lower Make Map Mark Match
    Measure Memoize Merge Minimize Mix Move Multiply Name Narrow Normalize Note Observe Obtain Open
    Optimize Order Pack Pair Parse Partition Pass Penalize Perturb Place Plan Plot Predict Prepare
    Price Print Produce Project Protect Prove Publish Put Quantize Query Raise Randomize Rank Read
    Rebuild Receive Recode Recompute Reconstruct Record Recover Redraw Reduce Refer Reflect Refuse
    Register Regress Release Remove Rename Render Repeat Replace Report Resample Rescale Reserve
    Reset Resolve Restore Restrict Return Reuse Reverse Rewrite Round Run Sample Save Say Scale
    Score Search Select Send Serialize Set Share Show Shrink Shuffle Simulate Skip Smooth Solve Sort
    Split Spread Standardize Start State Stop Store Stress Subtract Suggest Sum Suppress Switch
    Tabulate Take Tell Test Trace Train Transform Translate Truncate Try Tune Turn Undo Unpack
    Update Use Validate Vary Verify Visit Wait Walk Weight Widen Withdraw Wrap Write
    """,
    )
)
TITLE = re.compile(
    r"(Args|Attributes|Returns|Yields|Raises|Privacy|Examples|See Also|References|Note|Warning):"
)
ENTRY = re.compile(r" {4}\*{0,2}`?(\w+)`?(?: \([^)]*\))?: *(.*)")
CODE = re.compile(r"\b[ABCFKM]\d{1,2}\b")
PROOF = re.compile(r"^ *(Theorem|Proof|Source|Needs)s?:", re.MULTILINE)
LONGEST = 79
# What users call of a mechanism that a public function makes.
CALLED = frozenset(["release", "interval", "certify", "forecast", "explain", "guarantee", "std"])


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Something public: the object, its docstring, and where both are."""

    name: str
    module: str
    kind: str
    thing: object
    doc: str
    sections: dict[str, str] = field(default_factory=dict)

    def described(self, *titles):
        found = (ENTRY.fullmatch(line) for title in titles for line in self.lines(title))
        return {match[1] for match in found if match}

    def lines(self, title):
        return self.sections.get(title, "").splitlines()


def split(doc):
    """The sections of a docstring in Google style, by title; under "" what comes first."""
    parts, title = {"": []}, ""
    for line in doc.splitlines():
        if match := TITLE.fullmatch(line):
            title = match[1]
            parts[title] = []
        elif line and not line.startswith(" ") and title:
            title = f"after {title}"
            parts[title] = [line]
        else:
            parts[title].append(line)
    return {title: "\n".join(lines).rstrip() for title, lines in parts.items()}


def entry(name, kind, thing, doc, module):
    doc = inspect.cleandoc(doc or "")
    return Entry(name=name, module=module, kind=kind, thing=thing, doc=doc, sections=split(doc))


def namespaces():
    """`discreet` and every module that it or one of them offers by name."""
    todo, seen = [discreet], {}
    while todo:
        module = todo.pop()
        if module.__name__ not in seen:
            seen[module.__name__] = module
            todo += [one for one in offered(module).values() if isinstance(one, ModuleType)]
    return seen


def offered(module):
    """What a namespace lists, or else what it defines."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return {name: getattr(module, name) for name in listed}
    return {
        name: one
        for name, one in vars(module).items()
        if not name.startswith("_") and getattr(one, "__module__", "") == module.__name__
    }


def methods(owner):
    """Public methods and properties with the docstring that `help()` shows for them."""
    for name in dir(owner):
        if name.startswith("_"):
            continue
        found = [base for base in owner.__mro__ if name in vars(base)]
        if not found or not found[0].__module__.startswith("discreet"):
            continue
        one = vars(found[0])[name]
        kind = "method"
        if isinstance(one, property):
            one, kind = one.fget, "property"
        elif isinstance(one, functools.cached_property):
            one, kind = one.func, "property"
        one = getattr(one, "__func__", one)
        if not inspect.isfunction(one):
            continue
        if kind == "property":
            held = [vars(base)[name] for base in found]
            docs = [getattr(each, "__doc__", None) for each in held]
        else:
            docs = [inspect.unwrap(vars(base)[name]).__doc__ for base in found]
        doc = next((text for text in docs if text), "")
        yield f"{found[0].__qualname__}.{name}", kind, one, doc


def constructor(owner):
    """Whether a user makes it by calling it."""
    special = (enum.Enum, BaseException)
    return not issubclass(owner, special) and not getattr(owner, "_is_protocol", False)


@cache
def entries():
    """Every public object once."""
    found, seen = [], set()
    for module in namespaces().values():
        found.append(entry(module.__name__, "module", module, module.__doc__, module.__name__))
        for one in offered(module).values():
            if id(one) in seen or not (inspect.isclass(one) or inspect.isfunction(one)):
                continue
            seen.add(id(one))
            kind = "class" if inspect.isclass(one) else "function"
            doc = vars(one).get("__doc__") if kind == "class" else one.__doc__
            found.append(entry(one.__qualname__, kind, one, doc, one.__module__))
            for name, part, function, text in methods(one) if kind == "class" else ():
                if id(function) not in seen:
                    seen.add(id(function))
                    found.append(entry(name, part, function, text, function.__module__))
    for made in {returned(one) for one in found if one.kind == "function"}:
        if inspect.isclass(made) and made.__module__.startswith("discreet.mechanisms."):
            for name, part, function, text in methods(made):
                if name.rpartition(".")[2] in CALLED and id(function) not in seen:
                    seen.add(id(function))
                    found.append(entry(name, part, function, text, function.__module__))
    return tuple(found)


def parameters(one):
    """The names that must be described."""
    if one.kind in ("module", "property") or (one.kind == "class" and not constructor(one.thing)):
        return set()
    names = list(inspect.signature(one.thing).parameters)
    if one.kind == "method":
        names = [name for name in names if name not in ("self", "cls")]
    return {name for name in names if not name.startswith("_")}


def returns(one):
    hint = getattr(one.thing, "__annotations__", {}).get("return")
    return one.kind in ("function", "method") and hint not in (None, "None", "NoReturn", "Never")


def returned(one):
    """The class that a function returns, if its annotation can be read."""
    try:
        return typing.get_type_hints(one.thing).get("return")
    except (NameError, TypeError):
        return None


@cache
def checks(module):
    """The names by which a module calls the package's validation."""
    tree = ast.parse(inspect.getsource(importlib.import_module(module)))
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("discreet.core"):
            inner = (node.module or "").endswith("_validate")
            names |= {a.asname or a.name for a in node.names if inner or a.name == "_validate"}
    return frozenset(names)


def refuses(one):
    """Whether its own body raises an error of the package, or validates an argument."""
    if one.kind == "class":
        inits = [vars(one.thing).get(name) for name in ("__init__", "__post_init__")]
        bodies = [
            init
            for init in inits
            if inspect.isfunction(init) and init.__code__.co_filename.endswith(".py")
            if init.__module__.startswith("discreet")
        ]
    else:
        bodies = [one.thing] if one.kind in ("function", "method") else []
    for body in bodies:
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(body)))):
            if isinstance(node, ast.Raise) and node.exc is not None:
                raised = ast.unparse(node.exc)
                if "NotImplementedError" not in raised:
                    return True
            if isinstance(node, ast.Call):
                called = node.func
                outer = called.value if isinstance(called, ast.Attribute) else called
                if isinstance(outer, ast.Name) and outer.id in checks(body.__module__):
                    return True
    return False


def releases(one):
    """Whether it draws noise, charges an account, or makes what does."""
    if one.kind not in ("function", "method", "class"):
        return False
    names = parameters(one)
    made = returned(one) if one.kind == "function" else None
    paid = getattr(one.thing, "__annotations__", {}).get("account", "")
    return bool(
        "rng" in names
        or ("account" in names and str(paid) != "str")
        or {"epsilon", "label"} <= names
        or (one.kind == "method" and one.name.endswith(".release"))
        or (inspect.isclass(made) and issubclass(made, Mechanism | LocalRandomizer))
    )


def faults(one):
    """What is missing, in words."""
    summary, _, rest = one.doc.partition("\n")
    if not summary:
        yield "no docstring"
        return
    if len(summary) > LONGEST:
        yield f"summary longer than {LONGEST} characters"
    if not summary.endswith(".") or rest.partition("\n")[0].strip():
        yield "summary is not one line that ends with a period"
    if one.kind in ("function", "method") and summary.split()[0] not in VERBS:
        yield f"summary does not start with a verb (VERBS): {summary.split()[0]}"
    if found := sorted(set(CODE.findall(one.doc))):
        yield f"code {', '.join(found)}"
    if "``" in one.doc:
        yield "double backticks"
    if PROOF.search(one.doc):
        yield "a theorem or proof: they stand in comments below the docstring"
    if one.kind in ("module", "property"):
        return
    yield from _missing(one)


def _missing(one):
    titles = ("Args", "Attributes") if one.kind == "class" else ("Args",)
    wanted = parameters(one)
    if missing := sorted(wanted - one.described(*titles)):
        yield f"no description of {', '.join(missing)}"
    if unknown := sorted(one.described("Args") - wanted):
        yield f"no such parameter: {', '.join(unknown)}"
    members = one.thing if isinstance(one.thing, enum.EnumType) else ()
    if missing := sorted({member.name for member in members} - one.described("Attributes")):
        yield f"no description of {', '.join(missing)}"
    if returns(one) and not {"Returns", "Yields"} & one.sections.keys():
        yield "no Returns"
    if refuses(one) and "Raises" not in one.sections:
        yield "no Raises"
    if releases(one) and "Privacy" not in one.sections:
        yield "no Privacy"
    if ">>> " not in one.sections.get("Examples", ""):
        yield "no Examples"


def package(one):
    return ".".join(one.module.split(".")[:2])


@cache
def checked():
    """Every public object with its faults."""
    return tuple((one, tuple(faults(one))) for one in entries())


def table(found):
    """By package: public objects, parameters and callables, and what lacks of each."""
    rows = Counter()
    for one, wrong in found:
        wanted = parameters(one)
        called = one.kind in ("function", "method", "class")
        bare = wanted - one.described("Args", "Attributes")
        missing = called and ">>> " not in one.sections.get("Examples", "")
        counts = (1, bool(wrong), len(wanted), len(bare), called, missing)
        for column, count in enumerate(counts):
            rows[package(one), column] += count
            rows["all", column] += count
    head = f"{'':22}objects faulty  params  undescribed  callables  no example"
    lines = [
        f"{name:22}{rows[name, 0]:7}{rows[name, 1]:7}{rows[name, 2]:8}{rows[name, 3]:13}"
        f"{rows[name, 4]:11}{rows[name, 5]:12}"
        for name in sorted({name for name, _ in rows})
    ]
    return "\n".join([head, *lines])


def test_public_names_are_documented():
    print(table(checked()))
    wrong = [f"{one.module}: {one.name}: {'; '.join(found)}" for one, found in checked() if found]
    assert not wrong, "\n".join(wrong)


def results():
    """The classes that the reference shows as results and plans, which nobody imports."""
    for page in sorted((ROOT / "docs" / "reference").glob("*.md")):
        yield from listed(page.read_text(encoding="utf-8").partition("\n## Results and plans\n")[2])


def listed(text):
    """The objects that a page of the reference shows."""
    for full in re.findall(r"^::: (\S+)", text, re.MULTILINE):
        home, _, name = full.rpartition(".")
        yield (
            getattr(importlib.import_module(home), name) if home else importlib.import_module(full)
        )


@cache
def referred():
    """Every class that the reference shows, by itself or with its namespace."""
    found = {}
    for page in sorted((ROOT / "docs" / "reference").glob("*.md")):
        for one in listed(page.read_text(encoding="utf-8")):
            inner = offered(one).values() if isinstance(one, ModuleType) else (one,)
            found |= {id(each): each for each in inner if inspect.isclass(each)}
    ours = (each for each in found.values() if each.__module__.startswith("discreet"))
    return tuple(each for each in ours if not issubclass(each, BaseException))


def fields(owner):
    """What a user reads of an object, but for properties: they have docstrings of their own.

    What scikit-learn sets in `fit` ends with an underscore, and is told in prose.
    """
    ours = [base for base in owner.__mro__ if base.__module__.startswith("discreet")]
    names = {name for base in ours for name in inspect.get_annotations(base)}
    found = {name for name in names if not name.startswith("_") and not name.endswith("_")}
    return {name for name in found if not isinstance(getattr(owner, name, None), property)}


def undescribed(owner):
    """What the docstring of a class, and those of its bases, leave out."""
    held = [
        entry(base.__name__, "class", base, vars(base).get("__doc__"), base.__module__)
        for base in owner.__mro__
        if base.__module__.startswith("discreet")
    ]
    told = set().union(*(one.described("Args", "Attributes") for one in held))
    if missing := sorted(fields(owner) - told):
        yield f"no description of {', '.join(missing)}"
    if bare := sorted(
        name for name, kind, _, doc in methods(owner) if kind == "property" and not doc
    ):
        yield f"no docstring of {', '.join(bare)}"
    if ">>> " not in held[0].sections.get("Examples", ""):
        yield "no Examples"
    if set(CODE.findall(held[0].doc)) or "``" in held[0].doc:
        yield "codes or double backticks"


def test_classes_of_the_reference_describe_what_is_read_and_show_it():
    wrong = {one.__qualname__: list(undescribed(one)) for one in referred()}
    assert len(wrong) > 140
    assert {name: found for name, found in wrong.items() if found} == {}


@dataclass
class Bare:
    """A result."""

    value: float
    kind: typing.ClassVar[str] = "bare"
    coef_: float = 0

    @property
    def std(self):
        return 1


@dataclass
class Told(Bare):
    """A result that says all (F44).

    Attributes:
        value: A number.
        kind: A word.

    Examples:
        >>> Told(1).value
        1
    """

    @property
    def std(self):
        """The error."""
        return 1


def test_what_a_class_leaves_out_is_seen(monkeypatch):
    for one in (Bare, Told):
        monkeypatch.setattr(one, "__module__", "discreet.nowhere")
    bare = ["no description of kind, value", "no docstring of Bare.std", "no Examples"]
    assert list(undescribed(Bare)) == bare
    assert list(undescribed(Told)) == ["codes or double backticks"]


def test_what_is_called_of_results_is_documented():
    seen = {id(one.thing) for one in entries()}
    found = []
    for owner in results():
        for name, kind, function, doc in methods(owner):
            if kind == "method" and id(function) not in seen:
                seen.add(id(function))
                found.append(entry(name, kind, function, doc, function.__module__))
    wrong = [f"{one.module}: {one.name}: {'; '.join(list(faults(one)))}" for one in found]
    assert len(found) > 100
    assert [one for one in wrong if not one.endswith(": ")] == []


def test_the_walk_finds_classes_methods_properties_and_namespaces():
    names = {(one.module, one.name, one.kind) for one in entries()}
    assert ("discreet.tables._query_methods", "QueryMethods.mean", "method") in names
    assert ("discreet.ledger.ledger", "Ledger.account", "method") in names
    assert ("discreet.audit.series._leakage", "leakage", "function") in names
    assert ("discreet.accounting.guarantee", "Guarantee", "class") in names
    assert ("discreet.models.dp_sgd", "discreet.models.dp_sgd", "module") in names
    assert len(names) > 600


def documented(value: int, *, scale: float) -> int:
    """Scale a value.

    Args:
        value: A number.
        scale: A factor,
            on two lines: with a colon.

    Returns:
        The product.

    Raises:
        ValueError: If the scale is zero.

    Examples:
        >>> documented(2, scale=3)
        6
    """
    if not scale:
        raise ValueError
    return value * scale


def test_what_is_documented_has_no_fault():
    assert list(faults(entry("f", "function", documented, documented.__doc__, __name__))) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("Scale a value.", "Scale a value", "one line"),
        ("Scale a value.", "Scale a value,\n    or not.", "one line"),
        ("Scale a value.", f"Scale {'a ' * 40} value.", "longer"),
        ("Scale a value.", "The scaled value.", "verb"),
        ("value: A number", "other: A number", "description of value"),
        ("value: A number", "other: A number", "no such parameter: other"),
        ("Returns:", "Gives:", "no Returns"),
        ("Raises:", "Refuses:", "no Raises"),
        (">>> documented(2, scale=3)", "documented(2)", "no Examples"),
        ("A number", "A number (F44)", "code F44"),
        ("A number", "A ``number``", "backticks"),
        ("Returns:", "Theorem: it is.\n\n    Returns:", "theorem"),
    ],
)
def test_each_fault_is_seen(old, new, fault):
    doc = documented.__doc__.replace(old, new)
    assert doc != documented.__doc__
    found = list(faults(entry("f", "function", documented, doc, __name__)))
    assert any(fault in one for one in found), found


def test_what_draws_noise_or_charges_is_known():
    found = {one.name for one in entries() if releases(one)}
    assert {"laplace", "gaussian", "QueryMethods.mean", "oue", "AdditiveMechanism.release"} <= found
    assert not found & {"pure_dp", "col", "Ledger.accounts", "ErrorForecast"}


def constructors():
    for name in discreet.__all__:
        thing = getattr(discreet, name)
        if inspect.isfunction(thing):
            made = typing.get_type_hints(thing).get("return")
            if inspect.isclass(made) and issubclass(made, Mechanism):
                yield thing


MECHANISMS = sorted(constructors(), key=lambda function: function.__name__)


def test_the_mechanisms_are_found():
    assert {"gaussian", "laplace"} <= {function.__name__ for function in MECHANISMS}


@pytest.mark.parametrize("function", MECHANISMS, ids=lambda function: function.__name__)
@pytest.mark.parametrize("part", ["Theorem:", "Proof:", "Source:", "Needs:"])
def test_a_mechanism_states(function, part):
    below = inspect.getsource(function).rpartition('"""')[2]
    assert f"    # {part}" in below


@pytest.mark.parametrize("name", [name for name in discreet.__all__ if name != "__version__"])
def test_what_is_public_is_documented(name):
    assert inspect.getdoc(getattr(discreet, name))


def test_arguments_of_results_and_plans_are_described():
    missing = set()
    for owner in results():
        for name, kind, function, doc in methods(owner):
            one = entry(name, kind, function, doc, function.__module__)
            missing |= {f"{name}({x})" for x in parameters(one) - one.described("Args")}
            missing |= set() if doc else {name}
    assert not missing


if __name__ == "__main__":
    chosen = tuple(sys.argv[1:]) or ("discreet",)
    shown = [(one, found) for one, found in checked() if one.module.startswith(chosen)]
    for one, found in shown:
        if found:
            print(f"{one.module}: {one.name} ({one.kind}): {'; '.join(found)}")
    print(table(shown))
