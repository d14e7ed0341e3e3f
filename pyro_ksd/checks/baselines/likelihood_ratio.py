# SPDX-License-Identifier: Apache-2.0
"""The likelihood ratio of the model and an alternative, given or fitted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from pyro_ksd.checks.baselines.sampling import drawn_for, null_draws, sampleable
from pyro_ksd.checks.fit_options import check_options
from pyro_ksd.common.option_checks import check_number, is_real
from pyro_ksd.common.random_numbers import Seed, seeded_generator
from pyro_ksd.fit_tests.combination import harmonic_p
from pyro_ksd.models.conversion import as_model
from pyro_ksd.models.fitting.counting import check_pseudocount, fitted_log_likelihoods
from pyro_ksd.models.impossible_sequences import check_possible, find_impossible
from pyro_ksd.models.wrappers.sampler import Sampler
from pyro_ksd.results.result_tree import ResultTree
from pyro_ksd.results.shared_groups import common_groups, stamped
from pyro_ksd.sequences.container import Sequences


def likelihood_ratio_check(
    model: Any,
    data: Any,
    *,
    alternative: Any = 1,
    pseudocount: float = 0.0,
    parameters: Mapping[str, Tensor] | None = None,
    sampler: Sampler | None = None,
    num_bootstrap: int = 500,
    level: float = 0.05,
    seed: Seed = 0,
    progress: bool = True,
) -> ResultTree:
    r"""Checks whether an alternative explains the data better than the model, by the likelihood ratio.

    The statistic :math:`2 (\log L_\text{alternative} - \log L_\text{model})` is compared with those of data sets drawn
    from the model, to each of which the alternative is fitted anew; the level is exact. A baseline of Baum, Kanagawa
    and Gretton (2023).

    The statistic is what it says for models whose probabilities sum to 1: the distributions of this package, and
    programs without factors. A constant that is missing adds the same to it and to all null draws, so that the p-value
    is right in any case.

    :param model: what :func:`~pyro_ksd.ksd_check` takes; it must be possible to sample it.
    :param data: :class:`~pyro_ksd.sequences.Sequences`, or what :meth:`~pyro_ksd.sequences.Sequences.of` takes.
    :param alternative: the order of a Markov chain with stopping, which is fitted to the data by
        :func:`~pyro_ksd.models.fit_markov`; or a model. The model that made the data, were it known, would give
        the most powerful test of all.
    :param pseudocount: see :func:`~pyro_ksd.models.fit_markov`.
    :param parameters: values of a program's global sample sites and ``pyro.param`` sites, by name.
    :param sampler: draws sequences from a model that cannot: takes their number and a generator.
    :param num_bootstrap: the number of null draws. The smallest p-value is ``1 / (num_bootstrap + 1)``.
    :param level: the p-value up to which the verdict is that the model does not fit.
    :param seed: of all random numbers; the same seed gives the same result. An integer, or a ``torch.Generator``, from
        which it is drawn.
    :param progress: whether to show progress bars.
    :returns: the groups of :func:`~pyro_ksd.results.common_groups`, with one view. Null draws that a given alternative
        cannot have made, whose statistic is :math:`-\infty`, stand below all others.
    :raises ValueError: if the model, or a given alternative, gives probability 0 to some data.

    >>> from pyro_ksd import verdict
    >>> from pyro_ksd.examples import random_walk
    >>> data = random_walk(hold=0.5).draw(30, torch.Generator().manual_seed(0))
    >>> print(verdict(likelihood_ratio_check(random_walk(), data, progress=False)))
    the model does not fit (p = 0.002): the model gets runs of 2 symbols, the start or the end wrong
    """
    num_bootstrap, seed = check_options(num_bootstrap, level, seed, progress, sampler=sampler)
    ready, sequences = sampleable(model, data, parameters, sampler)
    check_possible(ready, sequences)
    other = _alternative(alternative, pseudocount, sequences)
    size = len(sequences)
    generator = seeded_generator(seed)

    def statistics(x: Sequences) -> Tensor:
        return 2 * (other.log_likelihoods(x, size) - _sums(ready.log_joint(x), size))[:, None]

    observed = statistics(sequences)[0]
    null = null_draws(
        lambda sets: statistics(drawn_for(sequences, ready, sets * size, generator)), num_bootstrap, size, progress
    )
    null = _finite(null, observed)
    each, overall = harmonic_p(observed, null)
    groups = common_groups(
        {other.name: other.meaning},
        observed,
        null,
        each,
        float(overall),
        sequences,
        kind="parametric",
        settings={"test": "likelihood ratio", "pseudocount": pseudocount, "seed": seed, "level": level},
    )
    return stamped(groups)


@dataclass(frozen=True, eq=False)
class _Alternative:
    """What the model is compared with.

    :ivar name: the name of the view.
    :ivar meaning: what a model that loses against it gets wrong.
    :ivar log_likelihoods: takes data sets that follow each other and their size, gives their log-likelihoods ``[G]``.
    """

    name: str
    meaning: str
    log_likelihoods: Callable[[Sequences, int], Tensor]


def _alternative(alternative: Any, pseudocount: float, sequences: Sequences) -> _Alternative:
    check_pseudocount(pseudocount)
    if isinstance(alternative, bool) or is_real(alternative):
        check_number("alternative", alternative, least=1)
        meaning = f"runs of {alternative + 1} symbols, the start or the end"
        fitted = partial(fitted_log_likelihoods, order=alternative, pseudocount=pseudocount)
        return _Alternative(f"order-{alternative}", meaning, fitted)
    if pseudocount:
        raise ValueError(f"pseudocount: expected 0 for an alternative that is not fitted, found {pseudocount}")
    try:
        given = as_model(alternative, sequences)
    except ValueError as error:
        raise ValueError(f"alternative: {error}") from error
    impossible = find_impossible(given, sequences)
    if len(impossible):
        raise ValueError(f"alternative: {impossible.message}; pass one that can")
    return _Alternative(
        "alternative", "what sets the alternative apart", lambda x, size: _sums(given.log_joint(x), size)
    )


def _sums(log_joint: Tensor, size: int) -> Tensor:
    """The log-likelihoods of data sets of ``size`` sequences, ``[G]``."""
    return log_joint.double().view(-1, size).sum(1)


def _finite(null: Tensor, observed: Tensor) -> Tensor:
    """Null draws with a number in place of ``-inf``, where the alternative cannot have made the data set."""
    if not (null < torch.inf).all():
        raise ValueError(
            "expected sequences drawn from the model to be possible under it, found some with the probability 0 or "
            "NaN; does the sampler draw from the model?"
        )
    smallest = torch.cat([observed, null[null.isfinite()]]).min()
    return null.clamp(min=smallest - 1)
