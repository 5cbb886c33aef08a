"""`discreet serve`: the demo as a stranger finds it, and the commands beside it."""

import json
import signal

import pytest
from click.testing import CliRunner

from discreet.cli.main import main
from discreet.core.errors import InvalidArgument
from discreet.server.demo import prepare
from discreet.server.store import open_store
from discreet.server.users import UserStore
from tests.server.running import Running, free_port, write_config, write_people


@pytest.mark.slow
def test_the_demo_works_at_once_and_ends_when_told(tmp_path):
    demo = prepare(tmp_path, address=f"127.0.0.1:{free_port()}")
    running = Running(demo.config)
    try:
        running.start()
        tables = running.ask("GET", "/api/v1/tables", token=demo.tokens["analyst"]).json
        assert [table["name"] for table in tables] == ["health"]
        assert tables[0]["budget"]["remaining"] < 2  # some was spent beforehand
        jobs = running.ask("GET", "/api/v1/releases", token=demo.tokens["analyst"]).json
        assert {job["state"] for job in jobs} == {"done"}
        shown = running.ask("GET", "/api/v1/ledger?verify=true", token=demo.tokens["auditor"]).json
        assert shown["verification"]["ok"]
        crowds = running.ask("GET", "/api/v1/personal", token=demo.tokens["owner"]).json
        assert sum(level["members"] for level in crowds[0]["levels"]) == crowds[0]["members"]
        body = {"statistics": [{"kind": "count", "epsilon": 0.1}], "request_id": "a", "wait": 20}
        job = running.ask(
            "POST", "/api/v1/tables/health/releases", token=demo.tokens["analyst"], body=body
        ).json
        assert job["state"] == "done"
        assert running.stop() in (0, -signal.SIGTERM)  # uvicorn hands the signal on at its end
        assert not any(token in running.said() for token in demo.tokens.values())
    finally:
        running.kill()


def test_a_demo_replaces_nothing_but_a_demo(tmp_path):
    for name in ("budget.db", "service.db", "serve.toml", "README.md"):
        folder = tmp_path / name.replace(".", "-")
        folder.mkdir()
        (folder / name).write_text("of a real service")
        with pytest.raises(InvalidArgument, match=f"holds {name} of something else"):
            prepare(folder, warm=False)
        assert (folder / name).read_text() == "of a real service"
        assert [one.name for one in folder.iterdir()] == [name]


@pytest.fixture
def config(tmp_path):
    write_people(tmp_path / "people.csv", rows=10)
    return write_config(tmp_path)


def test_tokens_are_made_and_revoked_from_the_shell(config):
    call = CliRunner().invoke
    made = call(main, ["serve", "token", str(config), "olga", "--role", "owner", "--days", "2"])
    assert made.exit_code == 0
    token = made.stdout.strip()
    people = UserStore(open_store(f"sqlite:///{config.parent / 'service.db'}"))
    assert people.by_token(token).role == "owner"
    other = call(main, ["serve", "token", str(config), "olga", "--role", "analyst"])
    assert other.exit_code == 2
    assert "never change" in other.output
    assert call(main, ["serve", "revoke", str(config), "olga"]).exit_code == 0
    assert people.by_token(token) is None
    assert call(main, ["serve", "revoke", str(config), "nobody"]).exit_code == 2


def test_serving_needs_a_configuration_that_holds(config):
    call = CliRunner().invoke
    assert call(main, ["serve", "run"]).exit_code == 2
    assert "--demo" in call(main, ["serve", "--help"]).output
    plain = config.read_text().replace("127.0.0.1:", "0.0.0.0:")
    config.write_text(plain)
    refused = call(main, ["serve", str(config)])
    assert refused.exit_code == 2
    assert "plain HTTP" in refused.output
    assert json.dumps("people") not in refused.output
