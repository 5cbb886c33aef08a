"""Servers to test against, each private, on the loopback, started when first asked for."""

import getpass
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

import pytest

BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


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
        self.port = free_port()
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
            connection.execute("DROP SCHEMA IF EXISTS discreet, discreet_service CASCADE")
        return url


@pytest.fixture(scope="session")
def server():
    if not BINARIES:
        pytest.skip("no PostgreSQL server is installed")
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))
    try:
        running = Server(folder)
        try:
            yield running
        finally:
            running.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Cluster:
    """A Spark master and one worker of it, two processes that do not outlive this one."""

    def __init__(self, folder):
        import pyspark

        self.home = Path(pyspark.__file__).parent
        self.folder = folder
        self.url = f"spark://127.0.0.1:{free_port()}"
        self.processes = []

    def start(self):
        port = self.url.rpartition(":")[2]
        self.run("master.Master", "--port", port)
        self.run("worker.Worker", "--cores", "2", "--memory", "1g", self.url)
        deadline = time.monotonic() + 120
        while "Successfully registered" not in self.said():
            assert all(process.poll() is None for process in self.processes), self.said()
            assert time.monotonic() < deadline, self.said()
            time.sleep(0.2)

    def run(self, name, *arguments):
        # The kernel ends it when this process ends, however that happens.
        command = ["setpriv", "--pdeathsig", "KILL", str(self.home / "bin" / "spark-class")]
        command += [f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", "--webui-port", "0"]
        folders = dict.fromkeys(("SPARK_LOCAL_DIRS", "SPARK_WORKER_DIR"), str(self.folder))
        settings = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m"}
        with (self.folder / "log").open("ab") as log:
            self.processes.append(
                subprocess.Popen(
                    [*command, *arguments],
                    env={**os.environ, **folders, **settings, "SPARK_HOME": str(self.home)},
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
            )

    def said(self):
        return (self.folder / "log").read_text(encoding="utf-8", errors="replace")

    def stop(self):
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(timeout=20)


@pytest.fixture(scope="session")
def cluster():
    """A Spark session on a cluster, far from UTC so that zones show."""
    if shutil.which("java") is None or shutil.which("setpriv") is None:
        pytest.skip("no Java is installed")
    from pyspark.sql import SparkSession

    folder = Path(tempfile.mkdtemp(prefix="spark-"))
    running = Cluster(folder)
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "768m",
        "spark.local.dir": str(folder),
        "spark.sql.session.timeZone": "Asia/Kolkata",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
    }
    try:
        running.start()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its own, of Python and pandas
            session = SparkSession.builder.master(running.url).config(map=settings).getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()
    finally:
        running.stop()
        shutil.rmtree(folder, ignore_errors=True)
