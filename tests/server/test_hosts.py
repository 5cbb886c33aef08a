"""Two servers on two hosts, so to speak: one PostgreSQL between them, one charge, one answer."""

import threading

import pytest

from tests.server.running import COUNT, Running, write_config, write_people

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
RELEASES = "/api/v1/tables/people/releases"


@pytest.fixture
def hosts(server, tmp_path):
    """Servers that share nothing but the database."""
    import psycopg

    url = server.empty()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET client_min_messages = warning")
        connection.execute("DROP SCHEMA IF EXISTS discreet_service CASCADE")
    found = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        write_people(folder / "people.csv", rows=200)
        config = write_config(folder)
        shared = f'store = "{url}"\nledger = "{url}"\n\n[rates]'
        config.write_text(config.read_text().replace("[rates]", shared, 1))
        host = Running(config)
        host.store = host.ledger = url
        found.append(host)
    try:
        for host in found:
            host.fork()
        yield found
    finally:
        for host in found:
            host.kill()


def test_one_request_to_both(hosts):
    token = hosts[0].token("ada")
    answers = []

    def send(host, number):
        body = {"statistics": [COUNT], "request_id": f"r{number}", "wait": 20}
        answers.append((number, host.ask("POST", RELEASES, token=token, body=body, timeout=60)))

    threads = [
        threading.Thread(target=send, args=(host, number))
        for number in range(5)
        for host in hosts
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {answer.status for _, answer in answers} == {200}
    for number in range(5):
        found = {
            str(sorted(answer.json["result"]["releases"][0].items()))
            for n, answer in answers
            if n == number and answer.json["state"] == "done"
        }
        assert len(found) == 1
    assert len(hosts[0].charges("people")) == 5
    assert hosts[1].verified().ok


def test_a_host_that_dies(hosts):
    token = hosts[0].token("ada")
    body = {"statistics": [COUNT], "request_id": "mine", "wait": 20}
    first = hosts[0].ask("POST", RELEASES, token=token, body=body).json
    hosts[0].kill()
    second = hosts[1].ask("POST", RELEASES, token=token, body=body).json
    assert second["id"] == first["id"]
    assert second["state"] == "done"
    assert len(hosts[1].charges("people")) == 1
    hosts[1].revoke("ada")
    assert hosts[1].ask("GET", "/api/v1/tables", token=token).status == 401
