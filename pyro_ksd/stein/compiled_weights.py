# SPDX-License-Identifier: Apache-2.0
"""Weights of edits in compiled loops: the same numbers as those of torch, in fewer passes."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pyro_ksd.common.compilation import compiled


def redrawn(log_ratio: Tensor, site: Tensor, num_sites: int) -> Tensor:
    r"""The probabilities of edits among all edits at their sites and none, :math:`r_e / (1 + \sum_{e'} r_{e'})`.

    :param log_ratio: ``[E]``, :math:`\log r_e`.
    :param site: long ``[E]``, below ``num_sites``.
    """
    weights = np.empty(len(log_ratio))
    top = np.zeros(num_sites)  # the log-ratio of no edit
    arrays = (log_ratio.contiguous().numpy(), site.contiguous().numpy(), top, np.zeros(num_sites), weights)
    _redrawn(*arrays)
    return torch.from_numpy(weights).to(log_ratio.dtype)


@compiled
def _redrawn(log_ratio: np.ndarray, site: np.ndarray, top: np.ndarray, total: np.ndarray, weights: np.ndarray) -> None:
    for edit in range(len(log_ratio)):
        top[site[edit]] = max(top[site[edit]], log_ratio[edit])
    for place in range(len(top)):
        total[place] = np.exp(-top[place])
    for edit in range(len(log_ratio)):
        weights[edit] = np.exp(log_ratio[edit] - top[site[edit]])
        total[site[edit]] += weights[edit]
    for edit in range(len(log_ratio)):
        weights[edit] /= total[site[edit]]
