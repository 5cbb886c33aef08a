"""Opacus: private training of a PyTorch module; here one linear layer."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from opacus import PrivacyEngine
from opacus.accountants.utils import get_noise_multiplier
from torch.utils.data import DataLoader, Dataset

warnings.simplefilter("ignore")
torch.set_num_threads(1)


class Rows(Dataset):  # type: ignore[misc]
    """Rows in memory; ``at_once`` hands out a whole batch instead of one row after the other."""

    def __init__(self, x: torch.Tensor, y: torch.Tensor, *, at_once: bool) -> None:
        self.x, self.y = x, y
        if at_once:
            self.__getitems__ = lambda places: (self.x[places], self.y[places])

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, place: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.x[place], self.y[place]


def adult_descent(  # noqa: PLR0913 - the public choices of a run
    *,
    file: str,
    batches: int,
    epochs: int,
    clip: float,
    learning_rate: float,
    momentum: float,
    epsilon: float,
    delta: float,
    fits: int,
    fastest: int,
) -> Callable[[], float]:
    """Mean accuracy of several fits; the noise is found beforehand by its PRV accountant."""
    held = np.load(file)
    x, x_test = (torch.tensor(held[name], dtype=torch.float32) for name in ("x", "x_test"))
    y, y_test = (torch.tensor(held[name], dtype=torch.float32) for name in ("y", "y_test"))
    noise = get_noise_multiplier(
        target_epsilon=epsilon,
        target_delta=delta,
        sample_rate=1 / batches,
        steps=batches * epochs,
        accountant="prv",
    )

    def fit() -> float:
        layer: Any = torch.nn.Linear(x.shape[1], 1)
        for part in layer.parameters():
            torch.nn.init.zeros_(part)
        loss: Any = torch.nn.BCEWithLogitsLoss()
        optimizer: Any = torch.optim.SGD(layer.parameters(), lr=learning_rate, momentum=momentum)
        loader: Any = DataLoader(
            Rows(x, y, at_once=bool(fastest)),
            batch_size=-(-len(x) // batches),
            collate_fn=(lambda batch: batch) if fastest else None,
        )
        private = PrivacyEngine().make_private(
            module=layer,
            optimizer=optimizer,
            data_loader=loader,
            noise_multiplier=noise,
            max_grad_norm=clip,
            poisson_sampling=True,
            **({"grad_sample_mode": "ghost", "criterion": loss} if fastest else {}),
        )
        layer, optimizer = private[:2]
        loss, loader = private[2:] if fastest else (loss, private[2])
        for _ in range(epochs):
            for rows, targets in loader:
                optimizer.zero_grad()
                loss(layer(rows)[:, 0], targets).backward()
                optimizer.step()
        with torch.no_grad():
            right = (layer(x_test)[:, 0] > 0) == (y_test > 0)
        return float(right.float().mean())

    return lambda: sum(fit() for _ in range(fits)) / fits
