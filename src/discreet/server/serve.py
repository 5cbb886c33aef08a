"""Run the server: one process, or several that share a store and a ledger."""

from __future__ import annotations

import logging
import logging.config
import os
import warnings
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI

from discreet.server.app import build
from discreet.server.config import Config, read
from discreet.server.middleware.timeouts import TimeoutMiddleware
from discreet.server.service import Service

_CONFIG = "DISCREET_SERVE_CONFIG"
_SHUTDOWN_S = 30


class BareFormatter(logging.Formatter):
    """Lines without tracebacks: the words of an error may quote what must not be seen."""

    def formatException(self, ei: Any) -> str:  # noqa: N802 - its name in the library
        """Only the kind."""
        return str(getattr(ei[0], "__name__", "error"))

    def formatStack(self, stack_info: str) -> str:  # noqa: ARG002, N802 - its name there
        """Nothing."""
        return ""


LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "bare": {
            "()": "discreet.server.serve.BareFormatter",
            "format": "%(asctime)s %(levelname)s %(name)s %(message)s",
        }
    },
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": "bare",
            "stream": "ext://sys.stderr",
        }
    },
    "loggers": {
        "discreet.web": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
        "uvicorn": {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
        "uvicorn.error": {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
        "asyncio": {"handlers": ["stderr"], "level": "ERROR", "propagate": False},
    },
}


def worker() -> FastAPI:
    """The application of one process; it finds its configuration by an environment variable."""
    warnings.simplefilter("ignore")  # a library's warning may quote what it was given
    config = read(Path(os.environ[_CONFIG]))
    TimeoutMiddleware.seconds = float(config.rates.seconds_to_send)
    TimeoutMiddleware.most = config.rates.connections
    return build(config)


def options(config: Config) -> dict[str, Any]:
    """What uvicorn is told."""
    return {
        "host": config.host,
        "port": config.port,
        "workers": config.workers,
        "http": TimeoutMiddleware,
        "ws": "none",
        "ssl_certfile": config.certificate,
        "ssl_keyfile": config.key,
        "proxy_headers": bool(config.proxy),
        "forwarded_allow_ips": list(config.proxy),
        "server_header": False,
        "access_log": False,
        "log_config": LOGGING,
        "timeout_keep_alive": config.rates.seconds_to_send,
        "timeout_graceful_shutdown": _SHUTDOWN_S,
        "timeout_worker_healthcheck": 30,
        "h11_max_incomplete_event_size": 1 << 14,
    }


def run(path: Path) -> None:
    """Serve until told to stop."""
    config = read(path)
    Service(config).close()  # what is wrong with store or ledger is said once, in words
    os.environ[_CONFIG] = str(path.resolve())
    # Workers share the cores; threads of the linear algebra would fight over them.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    uvicorn.run("discreet.server.serve:worker", factory=True, **options(config))
