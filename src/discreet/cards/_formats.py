"""A card for people: a Markdown page, a section of an HTML page, and a draft for a registry."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from discreet.core.number_format import at_most, short

Content = Mapping[str, Any]
_VARIANTS = {
    "pure": "Pure differential privacy",
    "approximate": "Approximate differential privacy",
    "zcdp": "Zero-concentrated differential privacy",
    "gdp": "Gaussian differential privacy",
    "local": "Local differential privacy",
}
_RELATIONS = {
    "ADD_REMOVE": "add or remove one unit",
    "REPLACE_ONE": "replace one unit, the number of units is public",
    "LOCAL": "any two values of one client",
}
_SHOWN = 50
"""Of more statistics, a page for people tells the number."""
Row = tuple[str, ...]


# ── The parts of a page ──────────────────────────────────────────────────────────────────────────


def _parts(card: Content) -> Iterable[tuple[str, Sequence[Row], Sequence[str]]]:
    """Title, table and sentences of each part, in the order of NIST SP 800-226."""
    if "discreet_audit" in card:
        yield from _audit_parts(card)
        return
    privacy, model = card["privacy"], card["model"]
    yield (
        "Unit of privacy and epsilon",
        [
            ("unit", privacy["unit"]["words"]),
            ("epsilon", f"{_shown(privacy['epsilon'])} at delta {_shown(privacy['delta'])}"),
            *[
                (f"epsilon at delta {_shown(one['delta'])}", _shown(one["epsilon"]))
                for one in privacy["epsilons"]
            ],
            *[
                (
                    f"a person over {one['length']}",
                    f"epsilon {_shown(one['epsilon'])}, {one['how']}",
                )
                for one in privacy.get("periods", ())
            ],
            *[
                (f"level {one['name']!r}", f"epsilon {_shown(one['epsilon'])}")
                for one in privacy.get("levels", ())
            ],
            ("advantage of any attacker", f"at most {_shown(privacy['attack']['advantage'])}"),
            *[
                (
                    f"participants found at false alarms {_shown(one['fpr'])}",
                    f"at most {_shown(one['tpr'])}",
                )
                for one in privacy["attack"]["tpr"]
            ],
            *[
                (name.replace("_", " "), "no limit" if value is None else str(value))
                for name, value in card["limits"].items()
            ],
        ],
        [],
    )
    yield (
        "Variant of differential privacy",
        [
            ("variant", _VARIANTS[privacy["variant"]]),
            ("neighboring relation", _RELATIONS[privacy["relation"]]),
            ("rho", _shown(privacy["rho"])),
            ("mu", _shown(privacy["mu"])),
            ("composition", privacy["method"]),
            ("fixed before the first look", "yes" if privacy["fixed_in_advance"] else "no"),
        ],
        [],
    )
    claims = sorted({one["claimed_by"] for one in card["measurements"] if not one["certified"]})
    yield (
        "Algorithms",
        [("claimed, not certified", f"noise of {name}") for name in claims],
        [_statistic(one) for one in card["statistics"][:_SHOWN]] + _rest(card),
    )
    yield (
        "Utility and bias",
        [(one["name"], _column(one)) for one in card["columns"]],
        [*card["post_processing"], "Values beyond the bounds are clipped."][: 2 * _SHOWN],
    )
    yield (
        "Trust model",
        [(name, model[name]) for name in ("trust", "access", "releases", "data")],
        [_fact(one) for one in card["public"]],
    )
    software = card["software"]
    yield (
        "Security",
        [
            ("software", f"{software['name']} {software['version']}"),
            *[(name, model[name]) for name in ("randomness", "arithmetic", "timing")],
            *_ledger(card),
        ],
        [
            f"Charged before this release: {one['label']} (entry {one['sequence']})"
            for one in card["exploration"][:_SHOWN]
        ],
    )
    person = card["person"]
    told = [(name.replace("_", " "), str(value)) for name, value in person.items() if value]
    yield "Data collection", told, []
    yield "What is not covered", [], list(card["not_covered"])


def _audit_parts(card: Content) -> Iterable[tuple[str, Sequence[Row], Sequence[str]]]:
    """What was attacked, claimed and found, and what that does not prove."""
    shown, rest = card["cases"][: 4 * _SHOWN], len(card["cases"]) - 4 * _SHOWN
    more = [f"{rest:,} more are in the JSON of the card."] if rest > 0 else []
    yield "What was attacked, claimed and found", [(one["name"], _case(one)) for one in shown], more
    software = card["software"]
    yield (
        "Confidence",
        [
            (
                "probability that any claim that holds is refuted by samples",
                f"at most {_shown(card['failure_probability'])}",
            ),
            (
                "outputs for each input",
                f"{min(one['attack']['samples'] for one in shown):,} or more",
            ),
            ("software", f"{software['name']} {software['version']}"),
        ],
        [],
    )
    yield "What this does not prove", [], list(card["not_proved"])


def _case(one: Content) -> str:
    def epsilon(number: Content | None) -> str:
        return "infinite" if number is None else short(float(number["value"]))

    claimed, exact, attack = one["claimed"], one["exact"], one["attack"]
    words = [f"claims epsilon {epsilon(claimed['epsilon'])} at delta {_shown(claimed['delta'])}"]
    if exact is not None:
        words.append(f"exact: {epsilon(exact['lower'])} to {epsilon(exact['upper'])}")
    words.append(
        f"attack: at least {epsilon(attack['epsilon'])} from {attack['samples']:,} outputs"
    )
    if one["certified"] is not None:
        words.append("certified" if one["certified"] else "its certificate fails")
    words.append(f"verdict: {one['verdict']}" + (f" ({one['why']})" if one["why"] else ""))
    return "; ".join(words)


def _rest(card: Content) -> list[str]:
    more = len(card["statistics"]) - _SHOWN
    return [f"{more:,} more statistics are in the JSON of the card."] if more > 0 else []


def _statistic(one: Content) -> str:
    noise = "; ".join(_noise(part) for part in one["noise"])
    return f"{one['title']}: {one['question']}. Epsilon {_shown(one['epsilon'])} alone. {noise}."


def _noise(part: Content) -> str:
    words = [f"{part['part']}: {part['law']}"]
    words += [f"{name} {part[name]}" for name in ("scale", "variance", "bound") if name in part]
    if shared := part.get("shared_with"):
        words.append(f"shared with {', '.join(shared)}")
    return ", ".join(words)


def _column(one: Content) -> str:
    told = [one["kind"]]
    if "lower" in one:
        told.append(f"{one['lower']} to {one['upper']}")
    if "level_count" in one:
        told.append(f"{one['level_count']} categories")
    if one.get("missing") is not None:
        told.append(f"missing counts as {one['missing']}")
    for name, value in one.get("spelling", {}).items():
        shown = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        told.append(f"{name.replace('_', ' ')}: {shown}")
    if one.get("required"):
        told.append("rows without a value are left out of every query")
    return ", ".join([*told, str(one.get("origin", "declared"))])


def _fact(one: Content) -> str:
    if one["origin"] == "exact from the data":
        return f"NOT PROTECTED, taken exactly from the data: {one['fact']}"
    return f"Public ({one['origin']}): {one['fact']}"


def _ledger(card: Content) -> list[Row]:
    held = card["ledger"]
    if held is None:
        return [("ledger", "none")]
    return [("ledger", f"account {held['account']}, entry {held['sequence']}, {held['hash']}")]


def _shown(number: Content | None) -> str:
    return "none" if number is None else at_most(float(number["value"]))


# ── Markdown and HTML ────────────────────────────────────────────────────────────────────────────


def markdown(card: Content) -> str:
    """The page; text of the analyst is escaped."""
    lines = [f"# {_named(card)}: {_md(card['title'])}", "", f"Written {_md(card['time'])}.", ""]
    for title, rows, sentences in _parts(card):
        lines += [f"## {title}", ""]
        if rows:
            lines += ["| | |", "|---|---|"]
            lines += [f"| {_md(name)} | {_md(value)} |" for name, value in rows] + [""]
        lines += [f"- {_md(one)}" for one in sentences] + ([""] if sentences else [])
        if not rows and not sentences:
            lines += ["(to be written by a person)", ""]
    return "\n".join(lines).rstrip() + "\n"


def _named(card: Content) -> str:
    return "Audit card" if "discreet_audit" in card else "Release card"


def _md(text: str) -> str:
    flat = re.sub(r"\s+", " ", str(text))
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", flat)


def html(card: Content) -> str:
    """A section that is folded until somebody opens it."""
    parts = []
    for title, rows, sentences in _parts(card):
        listed = "".join(
            f"<tr><th scope=row>{escape(name)}</th><td>{_cell(value)}</td></tr>"
            for name, value in rows
        )
        told = "".join(f"<li>{_cell(one)}</li>" for one in sentences)
        body = (f"<table>{listed}</table>" if listed else "") + (f"<ul>{told}</ul>" if told else "")
        parts.append(f"<h3>{escape(title)}</h3>{body or '<p>To be written by a person.</p>'}")
    kind = "audit" if "discreet_audit" in card else "release"
    return (
        f"<section><h2>{_named(card)}</h2><details><summary>{escape(card['title'])}: the statement "
        f"of this {kind}</summary>{''.join(parts)}</details></section>"
    )


def _cell(text: str) -> str:
    red = ' style="color:#b00020;font-weight:bold"'
    return f"<span{red}>{escape(text)}</span>" if text.startswith("NOT PROTECTED") else escape(text)


# ── The registry of deployments ──────────────────────────────────────────────────────────────────


def registry(card: Content) -> str:
    """A record in the fields of the public deployments registry, tier 3."""
    privacy, model, person = card["privacy"], card["model"], card["person"]

    def human(name: str, what: str) -> Any:
        return person.get(name) or f"(to be written by a person: {what})"

    facts = [_fact(one) for one in card["public"]]
    looks = [f"{one['label']} (ledger entry {one['sequence']})" for one in card["exploration"]]
    record = {
        "url_slug": re.sub(r"[^a-z0-9]+", "-", card["title"].lower()).strip("-") or "release",
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "product": {
                "name": card["title"],
                "data_curators": _listed(human("curator", "who holds the data")),
                "intended_use": human("intended_use", "what the numbers are for"),
                "data_product_type": "Summary statistics",
                "data_product_region": human("region", "country or region"),
                "description": "; ".join(one["question"] for one in card["statistics"][:_SHOWN]),
                "publication_date": card["time"][:10],
                "data_product_sector": human("sector", "sector of the data"),
            },
            "dp_flavor": {
                "name": _VARIANTS[privacy["variant"]],
                "data_domain": "; ".join(
                    f"{one['name']}: {_column(one)}" for one in card["columns"]
                )
                or "see the statistics",
                "unprotected_quantities": "; ".join(facts) or "none",
            },
            "privacy_loss": {
                "privacy_unit": " and ".join(privacy["unit"]["columns"]) or "one row or client",
                "privacy_unit_description": f"{privacy['unit']['words']}. Neighbors: "
                f"{_RELATIONS[privacy['relation']]}.",
                "privacy_parameters": {
                    name: privacy[name]["value"]
                    for name in ("epsilon", "delta", "rho", "mu")
                    if privacy[name] is not None
                },
                "privacy_parameters_description": "Any membership test has an advantage of at most "
                f"{_shown(privacy['attack']['advantage'])}.",
            },
            "model": {
                "model_name": model["trust"].title(),
                "actors": human("contact", "who collects, who computes, who may see what"),
                "release_type": f"{model['releases'].title()} release"
                + ("s" if model["releases"] == "many" else ""),
                "data_source_type": model["data"].title(),
                "access_type": model["access"].capitalize(),
            },
            "accounting": {
                "post_processing": "; ".join(card["post_processing"]) or "none",
                "composition": f"{len(card['measurements'])} measurements, each charged once, "
                f"composed by {privacy['method']}.",
            },
            "implementation": {
                "pre_processing_eda_hyperparameter_tuning": "; ".join(looks)
                or "no charged look before this release is on the card",
                "mechanisms": "; ".join(_statistic(one) for one in card["statistics"][:_SHOWN]),
                "justification": human("justification", "why these parameters"),
            },
            "resources": {
                "sources": person.get("source")
                or f"{card['software']['name']} "
                f"{card['software']['version']}; release card in JSON",
                "registry_authors": _listed(person.get("authors") or card["software"]["name"]),
            },
        },
    }
    return "\n".join(_yaml(record, 0)) + "\n"


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _yaml(value: Any, depth: int) -> list[str]:
    """Mappings and lists in blocks; every text as JSON, which YAML reads as well."""
    pad = "  " * depth
    if isinstance(value, Mapping):
        lines = []
        for name, one in value.items():
            if isinstance(one, Mapping | list):
                lines += [f"{pad}{name}:", *_yaml(one, depth + 1)]
            else:
                lines.append(f"{pad}{name}: {json.dumps(one, ensure_ascii=True)}")
        return lines or [f"{pad}{{}}"]
    return [f"{pad}- {json.dumps(one, ensure_ascii=True)}" for one in value]
