# SPDX-License-Identifier: Apache-2.0
"""Weights of edits in compiled loops: the same numbers as those of torch, in fewer passes."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pyro_ksd.common.compilation import compiled


def redrawn(log_ratio: Tensor, owner: Tensor, start: Tensor, shape: torch.Size) -> Tensor:
    r"""The probabilities of edits among all edits at their sites and none, :math:`r_e / (1 + \sum_{e'} r_{e'})`.

    :param log_ratio: ``[E]``, :math:`\log r_e`.
    :param owner: long ``[E]``, the row of the site of each edit.
    :param start: long ``[E]``, its position.
    :param shape: the number of rows and of positions.
    """
    weights = np.empty(len(log_ratio))
    top = np.zeros(shape)  # the log-ratio of no edit
    sites = (owner.contiguous().numpy(), start.contiguous().numpy())
    _below_top(log_ratio.contiguous().numpy(), *sites, top, weights)
    found = torch.from_numpy(weights).exp_()
    _normalize(*sites, torch.from_numpy(top).neg_().exp_().numpy(), weights)
    return found.to(log_ratio.dtype)


@compiled
def _below_top(log_ratio: np.ndarray, owner: np.ndarray, start: np.ndarray, top: np.ndarray, rest: np.ndarray) -> None:
    """Finds the largest log-ratio at each site, and how far those of its edits lie below it, ``rest [E]``."""
    for edit in range(len(log_ratio)):
        top[owner[edit], start[edit]] = max(top[owner[edit], start[edit]], log_ratio[edit])
    for edit in range(len(log_ratio)):
        rest[edit] = log_ratio[edit] - top[owner[edit], start[edit]]


@compiled
def _normalize(owner: np.ndarray, start: np.ndarray, total: np.ndarray, weights: np.ndarray) -> None:
    """Divides weights ``[E]`` by their sums at each site and the ``total`` that is there."""
    for edit in range(len(weights)):
        total[owner[edit], start[edit]] += weights[edit]
    for edit in range(len(weights)):
        weights[edit] /= total[owner[edit], start[edit]]
