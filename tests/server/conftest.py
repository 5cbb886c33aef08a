"""One server for all tests of a file, with four people; and one that is asked in its process."""

import asyncio
import csv

import pytest

from discreet.server import config
from discreet.server.app import build
from tests.server.browser import CONFIG, PEOPLE, Browser
from tests.server.running import Running, write_config, write_people


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """A server; ``running.tokens`` holds a token for each person."""
    folder = tmp_path_factory.mktemp("serve")
    write_people(folder / "people.csv")
    found = Running(write_config(folder))
    try:
        found.start()
        found.tokens = {
            name: found.token(name, role)
            for name, role in (
                ("olga", "owner"),
                ("ada", "analyst"),
                ("ben", "analyst"),
                ("vera", "auditor"),
            )
        }
        yield found
    finally:
        found.kill()


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    with (folder / "people.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["who", "age", "place", "ill"])
        for i in range(400):
            writer.writerow([f"p{i}", i % 90, "north" if i % 4 else "south", i % 3 == 0])
    (folder / "serve.toml").write_text(CONFIG)
    made = build(config.read(folder / "serve.toml"))
    with asyncio.Runner() as loop:
        made.state.loop = loop
        made.state.service.start()
        yield made
        made.state.service.close()


@pytest.fixture(scope="module")
def people(app):
    known = app.state.service.users
    return {name: Browser(app, known.add(name, role)[0]) for name, role in PEOPLE.items()}


@pytest.fixture
def ana(people):
    return people["ana"]
