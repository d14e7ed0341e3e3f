# SPDX-License-Identifier: Apache-2.0
"""Null draws of the statistics: how large would they be if the model were right?"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from tqdm.auto import tqdm

from pyro_ksd.kernels.base import DEFAULT_MAX_BYTES
from pyro_ksd.kernels.matrices import SteinMatrix
from pyro_ksd.models.base import SampleableModel
from pyro_ksd.sequences import Sequences
from pyro_ksd.statistics import check_sample_size, u_statistic, weighted_u_statistics
from pyro_ksd.stein import stein_matrices
from pyro_ksd.views import View

_CHUNK = 2**24  # elements of the largest array of weights
_REPLICATES = 64  # replicates whose features are computed together: enough to keep tensors busy


def rademacher(num_draws: int, size: int, generator: torch.Generator) -> Tensor:
    """Independent signs, -1 or 1; double ``[num_draws, size]``.

    They keep the level from small samples on, where :func:`multinomial` weights reject a true model too often.
    """
    signs = torch.randint(0, 2, (num_draws, size), generator=generator, device=generator.device)
    return signs.double().mul_(2).sub_(1)


def multinomial(num_draws: int, size: int, generator: torch.Generator) -> Tensor:
    """How often ``size`` draws with replacement meet each of ``size`` items, minus 1; double ``[num_draws, size]``.

    The weights of Baum, Kanagawa and Gretton (2023).
    """
    chosen = torch.randint(0, size, (num_draws, size), generator=generator, device=generator.device)
    ones = torch.ones(num_draws, size, dtype=torch.double, device=generator.device)
    return torch.zeros_like(ones).scatter_add_(1, chosen, ones).sub_(1)


def wild_bootstrap(
    matrices: Sequence[SteinMatrix],
    num_draws: int,
    generator: torch.Generator,
    *,
    weights: Callable[[int, int, torch.Generator], Tensor] = rademacher,
    progress: bool = False,
) -> Tensor:
    r"""Draws :math:`U^* = \frac{1}{n(n-1)} \sum_{i \ne j} W_i W_j H_{ij}` with random weights :math:`W`.

    Needs no samples from the model; right in the limit of large samples. All views see the same weights.

    :param matrices: the Stein kernel matrices of the views, ``V`` of them, of the same sequences.
    :param weights: :func:`rademacher` or :func:`multinomial`.
    :returns: double ``[num_draws, V]``
    """
    size = len(matrices[0])
    check_sample_size(size)
    rows = max(1, _CHUNK // size)
    draws = []
    with tqdm(total=num_draws, desc="wild bootstrap", unit="draw", disable=not progress) as bar:
        for begin in range(0, num_draws, rows):
            drawn = weights(min(rows, num_draws - begin), size, generator)
            draws.append(torch.stack([weighted_u_statistics(matrix, drawn) for matrix in matrices], 1))
            bar.update(len(drawn))
    return torch.cat(draws)


def parametric_bootstrap(
    model: SampleableModel,
    size: int,
    views: Sequence[View],
    num_draws: int,
    generator: torch.Generator,
    *,
    max_bytes: int = DEFAULT_MAX_BYTES,
    progress: bool = False,
) -> Tensor:
    """Draws data sets of ``size`` sequences from the model and computes their statistics.

    The test has the exact level for a model with known parameters, however small the sample.

    :param views: ``V`` views; all see the same data sets.
    :param max_bytes: see :func:`~pyro_ksd.stein.stein_matrices`.
    :returns: double ``[num_draws, V]``
    """
    check_sample_size(size)
    draws = []
    with tqdm(total=num_draws, desc="parametric bootstrap", unit="draw", disable=not progress) as bar:
        for begin in range(0, num_draws, _REPLICATES):
            together = min(_REPLICATES, num_draws - begin)
            replicates = model.draw(together * size, generator)
            draws.append(_statistics(model, replicates, together, views, max_bytes))
            bar.update(together)
    return torch.cat(draws)


def _statistics(
    model: SampleableModel, replicates: Sequences, count: int, views: Sequence[View], max_bytes: int
) -> Tensor:
    """The statistics of ``count`` data sets of one size that follow each other in ``replicates``; ``[count, V]``."""
    size = len(replicates) // count
    found = {}
    together = [view for view in views if view.kernel.has_features]
    if together:
        # The off-diagonal form with the indicator of a data set as weights is the sum over the pairs within it.
        member = torch.eye(count, dtype=torch.double, device=replicates.device).repeat_interleave(size, 1)
        for view, matrix in zip(together, stein_matrices(model, replicates, together), strict=True):
            found[view.name] = matrix.off_diagonal_form(member) / (size * (size - 1))
    apart = [view for view in views if not view.kernel.has_features]
    if apart:
        rows = torch.arange(len(replicates), device=replicates.device).split(size)
        each = [[u_statistic(m) for m in stein_matrices(model, replicates[row], apart, max_bytes)] for row in rows]
        for index, view in enumerate(apart):
            found[view.name] = torch.stack([statistics[index] for statistics in each])
    return torch.stack([found[view.name] for view in views], 1)
