"""Stores to test against: a file, and a private PostgreSQL server on the loopback."""

import getpass
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)


class Server:
    """A PostgreSQL server in a folder of its own; as root it runs as somebody else."""

    def __init__(self, folder):
        self.folder = folder
        self.data = folder / "data"
        self.user = getpass.getuser()
        if os.getuid() == 0:
            names = {entry.pw_name for entry in pwd.getpwall()}
            self.user = "postgres" if "postgres" in names else "nobody"
            shutil.chown(folder, self.user)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        trust = ("--auth=trust", "--username=ledger", "--encoding=UTF8", "--no-sync")
        self.call("initdb", "-D", self.data, *trust)
        self.start()

    def call(self, program, *arguments):
        command = [str(BINARIES[0] / program), *map(str, arguments)]
        if self.user != getpass.getuser():
            command = ["runuser", "-u", self.user, "--", *command]
        subprocess.run(
            command,
            check=True,
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=120,
        )

    def start(self):
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -k {self.folder}"
        log = self.folder / "log"
        self.call("pg_ctl", "-D", self.data, "-w", "-l", log, "-o", options, "start")

    def stop(self, mode="fast"):
        self.call("pg_ctl", "-D", self.data, "-w", "-m", mode, "stop")

    def empty(self):
        """The address of the database, after all that was in it is gone."""
        import psycopg

        url = f"postgresql://ledger@127.0.0.1:{self.port}/postgres"
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("SET client_min_messages = warning")
            connection.execute("DROP SCHEMA IF EXISTS discreet CASCADE")
        return url


@pytest.fixture(scope="session")
def server():
    if not BINARIES:
        pytest.skip("no PostgreSQL server is installed")
    folder = Path(tempfile.mkdtemp(prefix="ledger-"))
    try:
        running = Server(folder)
        try:
            yield running
        finally:
            running.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request, tmp_path):
    """The address of an empty store."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/budget.db"
    return request.getfixturevalue("server").empty()


@pytest.fixture
def raw(url):
    """A connection behind the ledger's back, with the triggers off: what a forger has."""
    if url.startswith("sqlite"):
        import sqlite3

        connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        for (name,) in names.fetchall():
            connection.execute(f"DROP TRIGGER {name}")
    else:
        import psycopg

        connection = psycopg.connect(url, autocommit=True)
        connection.execute("SET search_path = discreet")
        connection.execute("SET session_replication_role = replica")
    yield connection
    connection.close()
