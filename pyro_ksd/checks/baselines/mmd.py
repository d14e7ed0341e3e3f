# SPDX-License-Identifier: Apache-2.0
"""The maximum mean discrepancy between the data and sequences drawn from the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from pyro_ksd.checks.baselines.sampling import drawn_for, null_draws, sampleable
from pyro_ksd.checks.fit_options import check_options
from pyro_ksd.common.chunk_sizes import ENTRIES, PAIR_BYTES
from pyro_ksd.common.option_checks import check_instance, check_mapping, check_number
from pyro_ksd.common.progress import progress_bar
from pyro_ksd.common.random_numbers import Seed, seeded_generator
from pyro_ksd.fit_tests.absolute import SMALL_SAMPLE, Bootstrap
from pyro_ksd.fit_tests.combination import harmonic_p
from pyro_ksd.fit_tests.null_draws import rademacher
from pyro_ksd.fit_tests.statistics import u_statistic, weighted_u_statistics
from pyro_ksd.kernels.base import FeatureKernel, Kernel
from pyro_ksd.kernels.stein_matrices import FeatureMatrix, GramMatrix, SteinMatrix
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.wrappers.sampler import Sampler
from pyro_ksd.results.result_tree import ResultTree
from pyro_ksd.results.shared_groups import common_groups, stamped
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.views import default_views


def mmd_check(
    model: Any,
    data: Any,
    *,
    kernels: Mapping[str, Kernel[Any]] | None = None,
    num_samples: int | None = None,
    parameters: Mapping[str, Tensor] | None = None,
    sampler: Sampler | None = None,
    bootstrap: Bootstrap = "auto",
    num_bootstrap: int = 500,
    level: float = 0.05,
    seed: Seed = 0,
    progress: bool = True,
) -> ResultTree:
    r"""Checks whether the data look like sequences drawn from the model, by the maximum mean discrepancy.

    It needs a model that can be sampled, and knows the model by its samples :math:`y` alone:

    .. math::
        \mathrm{MMD}^2 = \frac{1}{n(n-1)} \sum_{i \ne i'} k(x_i, x_{i'}) + \frac{1}{m(m-1)} \sum_{j \ne j'}
        k(y_j, y_{j'}) - \frac{2}{nm} \sum_{i, j} k(x_i, y_j)

    (Gretton et al. 2012, "A kernel two-sample test"). A baseline of Baum, Kanagawa and Gretton (2023).

    :param model: what :func:`~pyro_ksd.ksd_check` takes.
    :param data: :class:`~pyro_ksd.sequences.Sequences`, or what :meth:`~pyro_ksd.sequences.Sequences.of` takes.
    :param kernels: how sequences are compared, by name; left out, those of the default views of the content, the start
        and the length.
    :param num_samples: how many sequences to draw from the model, :math:`m`; as many as there are data if left out.
    :param parameters: values of a program's global sample sites and ``pyro.param`` sites, by name.
    :param sampler: draws sequences from a model that cannot: takes their number and a generator.
    :param bootstrap: where the null draws come from. ``"parametric"`` compares fresh data with a fresh sample, both
        drawn from the model. ``"wild"`` needs as many samples as data: it exchanges :math:`x_i` with :math:`y_i` at
        random, and leaves their :math:`k(x_i, y_i)` out of the statistic. Both keep the level however small the
        sample. ``"auto"`` is wild from 100 sequences on, if there are as many samples.
    :param num_bootstrap: the number of null draws. The smallest p-value is ``1 / (num_bootstrap + 1)``.
    :param level: the p-value up to which the verdict is that the model does not fit.
    :param seed: of all random numbers; the same seed gives the same result. An integer, or a ``torch.Generator``, from
        which it is drawn.
    :param progress: whether to show progress bars.
    :returns: the groups of :func:`~pyro_ksd.results.common_groups`, one view a kernel.

    >>> from pyro_ksd import verdict
    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.kernels import ContiguousKernel
    >>> data = random_walk(hold=0.5).draw(30, torch.Generator().manual_seed(0))
    >>> print(verdict(mmd_check(random_walk(), data, kernels={"pairs": ContiguousKernel(2)}, progress=False)))
    the model does not fit (p = 0.002): the model gets pairs of neighbors wrong
    """
    num_bootstrap, seed = check_options(num_bootstrap, level, seed, progress, bootstrap=bootstrap, sampler=sampler)
    kernels = _default_kernels() if kernels is None else kernels
    _check_kernels(kernels)
    ready, sequences = sampleable(model, data, parameters, sampler)
    size = len(sequences)
    samples = check_number("num_samples", size if num_samples is None else num_samples, least=2)
    if bootstrap == "auto":
        bootstrap = "parametric" if size < SMALL_SAMPLE or size != samples else "wild"
    generator = seeded_generator(seed)
    sample = drawn_for(sequences, ready, samples, generator)
    if bootstrap == "wild":
        if size != samples:
            raise ValueError(
                f"num_samples: expected as many samples as data ({size}) for the wild bootstrap, which exchanges them "
                f"in pairs, found {samples}; leave num_samples out, or use bootstrap='parametric'"
            )
        matrices = [pair_matrix(kernel, sequences, sample) for kernel in kernels.values()]
        observed = torch.stack([u_statistic(matrix) for matrix in matrices])
        null = _wild_draws(matrices, num_bootstrap, generator, progress)
    else:
        observed = _statistics(kernels, sequences, sample, 1)[0]
        null = _parametric_draws(kernels, ready, sequences, samples, num_bootstrap, generator, progress)
    each, overall = harmonic_p(observed, null)
    groups = common_groups(
        {name: kernel.meaning for name, kernel in kernels.items()},
        observed,
        null,
        each,
        float(overall),
        sequences,
        kind=bootstrap,
        settings={"test": "mmd", "num_samples": samples, "seed": seed, "level": level},
    )
    return stamped(groups)


def _default_kernels() -> dict[str, Kernel[Any]]:
    names = ("content-1", "content-2", "content-3", "start", "length")
    return {view.name: view.kernel for view in default_views() if view.name in names}


def _check_kernels(kernels: Mapping[str, Kernel[Any]]) -> None:
    check_mapping("kernels", kernels, "kernels by name, such as {'pairs': ContiguousKernel(2)}")
    if not kernels:
        raise ValueError("kernels: expected at least one kernel by its name, found none; leave it out for the default")
    for kernel in kernels.values():
        check_instance("kernels", kernel, Kernel, "kernels by name, such as {'pairs': ContiguousKernel(2)}")


def mmd_squared(kernel: Kernel[Any], x: Sequences, y: Sequences, num_sets: int = 1) -> Tensor:
    """The unbiased estimate of MMD², double ``[G]``; it can be negative.

    :param x: ``G`` data sets of equal size that follow each other.
    :param y: as many samples, also of equal size.
    :param num_sets: ``G``.
    """
    n = len(x) // num_sets
    m = len(y) // num_sets
    if isinstance(kernel, FeatureKernel):
        left, right = _features(kernel, x, y)
        among_x = left.off_diagonal_sums(n)
        among_y = right.off_diagonal_sums(m)
        totals = zip(left.group_sums(n), right.group_sums(m), strict=True)
        across = torch.cat([(a.total * b.total).sum(1) for a, b in totals])
    else:
        sums = [_gram_sums(kernel, a, b) for a, b in zip(_sets(x, n), _sets(y, m), strict=True)]
        among_x, among_y, across = torch.stack(sums, 1)
    return among_x / (n * (n - 1)) + among_y / (m * (m - 1)) - 2 * across / (n * m)


def pair_matrix(kernel: Kernel[Any], x: Sequences, y: Sequences) -> SteinMatrix:
    r""":math:`h_{ij} = k(x_i, x_j) + k(y_i, y_j) - k(x_i, y_j) - k(y_i, x_j)`, ``[n, n]``.

    Exchanging :math:`x_i` with :math:`y_i` changes the sign of its row and column.
    """
    if isinstance(kernel, FeatureKernel):
        left, right = _features(kernel, x, y)
        change = left.values - right.values
        return FeatureMatrix(change.coalesce() if change.is_sparse else change, left.codes)
    n = len(x)
    gram = _gram(kernel, Sequences.cat([x, y]))
    return GramMatrix(gram[:n, :n] + gram[n:, n:] - gram[:n, n:] - gram[n:, :n])


def _parametric_draws(
    kernels: Mapping[str, Kernel[Any]],
    model: SequenceModel,
    sequences: Sequences,
    samples: int,
    num_draws: int,
    generator: torch.Generator,
    progress: bool,
) -> Tensor:
    def statistics(num_sets: int) -> Tensor:
        x = drawn_for(sequences, model, num_sets * len(sequences), generator)
        y = drawn_for(sequences, model, num_sets * samples, generator)
        return _statistics(kernels, x, y, num_sets)

    return null_draws(statistics, num_draws, max(len(sequences), samples), progress)


def _wild_draws(matrices: list[SteinMatrix], num_draws: int, generator: torch.Generator, progress: bool) -> Tensor:
    size = len(matrices[0])
    rows = max(1, ENTRIES // size)
    draws = []
    with progress_bar(total=num_draws, desc="wild bootstrap", unit="draw", show=progress) as bar:
        for begin in range(0, num_draws, rows):
            signs = rademacher(min(rows, num_draws - begin), size, generator)
            draws.append(torch.stack([weighted_u_statistics(matrix, signs) for matrix in matrices], 1))
            bar.update(len(signs))
    return torch.cat(draws)


def _statistics(kernels: Mapping[str, Kernel[Any]], x: Sequences, y: Sequences, num_sets: int) -> Tensor:
    """MMD² of each data set by each kernel, ``[G, V]``."""
    return torch.stack([mmd_squared(kernel, x, y, num_sets) for kernel in kernels.values()], 1)


def _features(kernel: FeatureKernel, x: Sequences, y: Sequences) -> tuple[FeatureMatrix, FeatureMatrix]:
    """The features of both, with the same columns."""
    features = kernel.features(Sequences.cat([x, y]))
    return features.rows(0, len(x)), features.rows(len(x), len(features))


def _gram_sums(kernel: Kernel[Any], x: Sequences, y: Sequences) -> Tensor:
    """``Σ_{i≠i'} k(x_i, x_i')``, ``Σ_{j≠j'} k(y_j, y_j')`` and ``Σ_{i,j} k(x_i, y_j)``, ``[3]``."""
    n = len(x)
    gram = _gram(kernel, Sequences.cat([x, y]))
    hollow = gram.fill_diagonal_(0.0)
    return torch.stack([hollow[:n, :n].sum(), hollow[n:, n:].sum(), hollow[:n, n:].sum()])


def _sets(sequences: Sequences, size: int) -> list[Sequences]:
    """The data sets of ``size`` sequences that follow each other."""
    return [sequences[begin : begin + size] for begin in range(0, len(sequences), size)]


def _gram(kernel: Kernel[Any], sequences: Sequences) -> Tensor:
    """The kernel matrix, ``[N, N]``, computed some rows at a time, which bounds the memory."""
    together = max(1, PAIR_BYTES // (kernel.bytes_per_pair(sequences.width) * len(sequences)))
    rows = torch.arange(len(sequences)).split(together)
    return torch.cat([kernel.gram(sequences[row], sequences) for row in rows])
