"""One server for all tests of a file, with four people."""

import pytest

from tests.apps.web.serving import Running, write_config, write_people


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
