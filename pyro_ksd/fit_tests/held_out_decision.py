# SPDX-License-Identifier: Apache-2.0
r"""One decision from sequences that posteriors have not seen: those put aside, or each fold of the data in turn.

For :math:`k` folds there are as many posteriors, each given the sequences of the other folds, and fold :math:`j` with
its :math:`n_j` of :math:`n` sequences is held out from the posterior :math:`\pi_j`. The statistic is the mean of those
of the folds, :math:`\sum_j \frac{n_j}{n} \bar T_j(y_j)`, and its null draws are the means of one replicated data set
from each fold. The statistic of a fold is large only if that fold fits badly, and a fault that all of the data have
raises all of them, so that their mean has more power than a rule that looks for the smallest p-value.

A replicated mean has independent folds; the real ones depend on each other, as each belongs to the data of the other
posteriors. Seen by features whose expectation the parameters can fit, the deviations of two folds from the others have
the correlation :math:`-1 / (k - 1)`, and so their squares, which make up the statistics, about
:math:`1 / (k - 1)^2`: the variance of the mean is at most :math:`k / (k - 1)` times that of independent folds. With two
folds it would be twice as large, so that there must be three or more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pyro_ksd.common.option_checks import check_instance
from pyro_ksd.fit_tests.combination import harmonic_p
from pyro_ksd.fit_tests.held_out import HeldOut
from pyro_ksd.fit_tests.informative import informative_views
from pyro_ksd.fit_tests.localization import Localization, joined_localization
from pyro_ksd.fit_tests.null_draws import NullDraws
from pyro_ksd.stein.operators import Operator
from pyro_ksd.stein.views import View, check_views


@dataclass(frozen=True, eq=False)
class Fold:
    """One fold, checked by itself.

    :ivar rows: long ``[n_j]``, its rows among the sequences of all folds.
    :ivar statistic: double ``[V]``.
    :ivar p_value: double ``[V]``, the p-value of each view.
    :ivar p_value_overall: that of all views together.
    """

    rows: Tensor
    statistic: Tensor
    p_value: Tensor
    p_value_overall: float


@dataclass(frozen=True, eq=False)
class SplitPredictive:
    """What a check of held-out sequences found.

    :ivar views: the ``V`` views.
    :ivar statistic: double ``[V]``, means over the folds.
    :ivar null: the same of replicated data, ``[B, V]``; the largest scores of features are those of the folds in turn.
    :ivar p_value: double ``[V]``, the p-value of each view.
    :ivar p_value_overall: that of all views together.
    :ivar places: where the misfit of each view sits; nothing unless it was looked for.
    :ivar folds: the folds one by one; a single one for sequences that were put aside.
    """

    views: tuple[View, ...]
    statistic: Tensor
    null: NullDraws
    p_value: Tensor
    p_value_overall: float
    places: list[Localization]
    folds: tuple[Fold, ...]


def split_predictive(parts: Sequence[HeldOut], rows: Sequence[Tensor], views: Sequence[View]) -> SplitPredictive:
    """One decision from held-out sequences, of one fold or of several.

    :param parts: what :func:`~pyro_ksd.fit_tests.held_out.compare_held_out` found for each fold.
    :param rows: long ``[n_j]`` for each fold, its rows among the sequences of all folds.
    :param views: those of the parts.

    >>> import pyro
    >>> from pyro_ksd import MarkovSequence, Sequences, default_views
    >>> from pyro_ksd.fit_tests.held_out import compare_held_out
    >>> from pyro_ksd.models.posterior.posterior_models import PosteriorModels
    >>> def program(x=None, num_sequences=None):
    ...     stop = pyro.sample("stop", pyro.distributions.Beta(2.0, 2.0))
    ...     chain = MarkovSequence.from_transitions(torch.ones(2) / 2, torch.ones(2, 2) / 2, stop)
    ...     with pyro.plate("sequences", num_sequences if x is None else len(x)):
    ...         return pyro.sample("x", chain, obs=x)
    >>> held_out, views = Sequences.of(["ab", "b", "aba", "aa"]), default_views()
    >>> models = PosteriorModels(program, held_out, {"stop": torch.linspace(0.3, 0.5, 21)})
    >>> part = compare_held_out(models, held_out, views, torch.Generator().manual_seed(0))
    >>> split_predictive([part], [torch.arange(4)], views).null.statistic.shape
    torch.Size([19, 10])
    """
    check_views(views)
    for part in parts:
        check_instance("parts", part, HeldOut, "what compare_held_out gave, for each fold")
    shown = informative_views(views, _rates(parts), sum(map(len, rows)))
    views = [views[index] for index in shown]
    weights = torch.tensor([view.weight for view in views], dtype=torch.double)
    sizes = torch.tensor([len(own) for own in rows], dtype=torch.double)
    shares = sizes / sizes.sum()
    count = min(len(part.null.statistic) for part in parts)
    nulls = [NullDraws(part.null.statistic[:count], part.null.extreme[:count]).of_views(shown) for part in parts]
    statistics = [part.statistic[shown] for part in parts]
    folds = []
    for own, statistic, null in zip(rows, statistics, nulls, strict=True):
        each, overall = harmonic_p(statistic, null.statistic, weights)
        folds.append(Fold(own, statistic, each, float(overall)))
    statistic = _mean(statistics, shares)
    null = NullDraws(_mean([own.statistic for own in nulls], shares), _from_each([own.extreme for own in nulls]))
    each, overall = harmonic_p(statistic, null.statistic, weights)
    places = []
    if all(part.places for part in parts):
        places = [joined_localization([part.places[index] for part in parts], rows) for index in shown]
    return SplitPredictive(tuple(views), statistic, null, each, float(overall), places, tuple(folds))


def _rates(parts: Sequence[HeldOut]) -> Mapping[Operator, Tensor]:
    """The sums of all weights of each operator over all folds, ``[1]``, under the draws with the largest ones."""
    return {
        operator: torch.stack([part.rates[operator].max() for part in parts]).sum()[None] for operator in parts[0].rates
    }


def _mean(values: Sequence[Tensor], shares: Tensor) -> Tensor:
    return torch.einsum("j,j...->...", shares, torch.stack(list(values)))


def _from_each(extremes: Sequence[Tensor]) -> Tensor:
    """Draws ``[B, V]`` of which each fold gives every ``k``-th."""
    stacked = torch.stack(list(extremes))
    draws = torch.arange(stacked.shape[1])
    return stacked[draws % len(stacked), draws]
