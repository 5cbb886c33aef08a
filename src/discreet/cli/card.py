"""`discreet card` and `discreet verify`: the statement of a release, written and checked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from discreet.cards.card import CardCheck, ReleaseCard, card
from discreet.core import canonical_json as canonical
from discreet.core.errors import InvalidArgument
from discreet.ledger.account import Account
from discreet.ledger.ledger import Ledger
from discreet.local.collection.spec import CollectionSpec
from discreet.query.result import StoredResult
from discreet.tables.release import Release

EXIT_WRONG = 1
"""The card does not hold."""


def write(
    path: Path | None, *, kind: str, title: str | None, person: tuple[str, ...], to: Path | None
) -> int:
    """Write a card in one of its forms."""
    if kind == "schema":
        text = json.dumps(ReleaseCard.schema(), indent=1)
    else:
        if path is None:
            raise InvalidArgument("Give the JSON of a release, a report, a card or a collection.")
        made = _made(path.read_text(encoding="utf-8"), title, _told(person))
        form = {
            "json": made.to_json,
            "markdown": made.to_markdown,
            "html": made.to_html,
            "registry": made.to_registry,
        }
        text = form[kind]()
    if to is None:
        print(text.rstrip("\n"))
    else:
        to.write_text(text, encoding="utf-8")
    return 0


def _told(given: tuple[str, ...]) -> dict[str, str]:
    pairs = [one.partition("=") for one in given]
    if not all(sign for _, sign, _ in pairs):
        raise InvalidArgument("--person takes NAME=TEXT, such as curator=Us.")
    return {name: text for name, _, text in pairs}


def _made(text: str, title: str | None, person: dict[str, str]) -> ReleaseCard:
    with canonical.reading("a card, a release, a report or a collection"):
        content = json.loads(text)
        if "discreet_card" in content or "discreet_audit" in content:
            held = ReleaseCard.from_json(text)
            more: dict[str, Any] = {} if title is None else {"title": title}
            if person and "discreet_audit" in content:
                raise InvalidArgument("The card of an audit has no fields for a person.")
            if person:
                more["person"] = {**held.content["person"], **person}
            return ReleaseCard({**held.content, **more})
        if "discreet_result" in content:
            return card(StoredResult.from_json(text), title=title, person=person)
        if "randomizer" in content or "kind" in content:
            return card(CollectionSpec.from_json(text), title=title, person=person)
        held_ones = content.get("releases", [content])
        if content.get("ranges"):
            raise InvalidArgument(
                "This report has ranges in files of their own: its card was written beside it."
            )
        made = [Release.from_json(json.dumps(one)) for one in held_ones]
        return card(made, title=title or content.get("title"), person=person)


def check(path: Path, *, release: Path | None, url: str | None, as_json: bool) -> int:
    """Check a card, also against the release and the ledger."""
    try:
        held = ReleaseCard.from_json(path.read_text(encoding="utf-8"))
    except InvalidArgument as error:
        found = CardCheck(problems=(str(error),), checked=(), unchecked=())
        return _shown(found, as_json=as_json)
    against = None if release is None else release.read_text(encoding="utf-8")
    if url is None or "discreet_audit" in held.content:
        return _shown(held.verify(against), as_json=as_json)
    with Ledger(url) as ledger:
        found = held.verify(against, account=_account(ledger, held))
    return _shown(found, as_json=as_json)


def _account(ledger: Ledger, held: ReleaseCard) -> Account:
    stated = held.content["ledger"]
    name = None if stated is None else stated["account"]
    for one in ledger.accounts():
        if one.name == name:
            return one
    raise InvalidArgument(f"The ledger has no account {name!r}, which the card names.")


def _shown(found: CardCheck, *, as_json: bool) -> int:
    if as_json:
        content = {
            "ok": found.ok,
            "problems": found.problems,
            "checked": found.checked,
            "unchecked": found.unchecked,
        }
        print(json.dumps(content))
    else:
        print(found)
    return 0 if found.ok else EXIT_WRONG
