"""What the documentation says about serving is true of the code."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from discreet.core.errors import InvalidArgument
from discreet.server import config

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "serve.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def read(tmp_path):
    def made(text):
        for name in ("server.pem", "server.key"):
            (tmp_path / name).touch()
        path = tmp_path / "service.toml"
        path.write_text(text)
        return config.read(path)

    return made


def test_the_configuration_of_the_page_is_read(read):
    found = read(BLOCKS[0])
    assert found.url == "http://127.0.0.1:8337"
    assert set(found.tables["visits"].setting.schema) == {"age", "ward", "hours"}
    assert found.tables["visits"].expected_rows == 250_000


@pytest.mark.parametrize("block", BLOCKS[1:])
def test_so_are_its_ways_beyond_one_machine(read, block):
    table = BLOCKS[0].partition("[[table]]")
    found = read(block + "[[table]]" + table[2])
    assert found.secure
    assert not found.loopback


@pytest.mark.parametrize("block", BLOCKS[1:])
def test_without_encryption_there_is_no_other_address(read, block):
    address = tomllib.loads(block)["server"]["address"]
    table = BLOCKS[0].partition("[[table]]")[2]
    with pytest.raises(InvalidArgument, match="plain HTTP"):
        read(f'[server]\naddress = "{address}"\n[[table]]{table}')


def test_all_rates_are_named():
    assert all(f"`{name}`" in PAGE for name in config.RateConfig.__dataclass_fields__)
