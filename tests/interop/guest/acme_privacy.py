"""What a package may add: a source, a mechanism, a section, an audit, a command."""

import click
import numpy as np
import polars as pl

import discreet
from discreet.audit.case import AuditCase, AuditSuite


def opened(address):
    """The rows of `acme://<how many>`."""
    many = int(address.removeprefix("acme://"))
    return pl.DataFrame(
        {"person": [f"p{i}" for i in range(many)], "x": [i % 10 for i in range(many)]}
    )


def noise(*, epsilon):
    """Noise whose distribution discreet knows."""
    return discreet.laplace(sensitivity=1, epsilon=epsilon)


def foreign():
    """Something that discreet cannot certify."""
    return object()


def notes(releases):
    """A section of the report: text, not HTML."""
    return "Notes of <Acme>", [f"{len(releases)} numbers & <b>more</b>"]


@click.command("acme-hello")
def hello():
    """Say hello."""
    click.echo("hello from acme")


def _draw(value, n, seed):
    return np.random.default_rng(seed).laplace(value, 1.0, n)


SUITE = AuditSuite(
    cases=lambda: (
        AuditCase(name="acme noise", claimed=(1, 0), draw=_draw, left=0, right=1, samples=1_000),
    ),
    published=tuple,
    demonstrations=tuple,
)
