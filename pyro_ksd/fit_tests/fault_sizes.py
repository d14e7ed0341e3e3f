# SPDX-License-Identifier: Apache-2.0
"""How large the faults are that a check names: factors, and rates observed and expected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from pyro_ksd.common.random_numbers import seeded_generator
from pyro_ksd.edits.counts import Count, count_values
from pyro_ksd.fit_tests.absolute import GoodnessOfFit
from pyro_ksd.fit_tests.count_rates import CountTotals, mean_counts, mean_rates
from pyro_ksd.fit_tests.jumps import Jumps, enough_jumps, scored_length_jumps
from pyro_ksd.fit_tests.localization import Localization, TopFeatures
from pyro_ksd.fit_tests.tilting import ENOUGH, tilt_each
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.views import View

MOST_SIZED = 10
"""Of how many features of a view the size is found, those that stand out most."""

COVERAGE = 0.95
"""How often intervals contain the true value."""

_COUNTED = {"ngram": "ngram", "start": "first", "end": "last", "length": "length"}


@dataclass(frozen=True, eq=False)
class EffectSizes:
    """How large faults are, for the ``K`` features of a view; NaN where nothing is known.

    :ivar factor: double ``[K]``, by which every occurrence must be weighted to agree with the data, see
        :mod:`pyro_ksd.fit_tests.tilting`.
    :ivar factor_low: double ``[K]``, the lower end of its 95 % interval.
    :ivar factor_high: double ``[K]``, the upper end.
    :ivar observed: double ``[K]``, the mean number in a sequence of the data.
    :ivar observed_low: double ``[K]``, the lower end of the 95 % interval of the mean number in a sequence from where
        the data come from, see :mod:`pyro_ksd.fit_tests.count_rates`.
    :ivar observed_high: double ``[K]``, the upper end.
    :ivar expected: double ``[K]``, the mean number in sequences drawn from the model, where it was sampled.
    :ivar expected_low: double ``[K]``, the lower end of the 95 % interval of its mean under the model.
    :ivar expected_high: double ``[K]``, the upper end.
    :ivar ratio: double ``[K]``, observed over expected.
    :ivar ratio_low: double ``[K]``, the lower end of its 95 % interval.
    :ivar ratio_high: double ``[K]``, the upper end; infinite where none of the drawn sequences has the feature.
    """

    factor: Tensor
    factor_low: Tensor
    factor_high: Tensor
    observed: Tensor
    observed_low: Tensor
    observed_high: Tensor
    expected: Tensor
    expected_low: Tensor
    expected_high: Tensor
    ratio: Tensor
    ratio_low: Tensor
    ratio_high: Tensor

    @staticmethod
    def unknown(count: int) -> EffectSizes:
        """Nothing is known of ``count`` features."""
        return EffectSizes(*(torch.full((count,), torch.nan, dtype=torch.double) for _ in fields(EffectSizes)))


@dataclass(frozen=True, eq=False)
class Outstanding:
    """The features of a view that stand out, ``C`` of them, if the model is rejected.

    :ivar rows: long ``[C]``, their places among the features that the view reports.
    :ivar counts: what each of them counts in a sequence.
    """

    rows: Tensor
    counts: list[Count]


def effect_sizes(
    result: GoodnessOfFit,
    places: Sequence[Localization],
    sequences: Sequences | Sequence[CountTotals],
    drawn: Sequences | None,
    level: float,
) -> list[EffectSizes]:
    """How large the faults of each view are: of the features that stand out, if the model is rejected.

    The model is not asked again where the log-ratios of the edits were kept. Of large data, a random part is enough for
    the factors, and the intervals are those of this part.

    :param places: one for each view of the test.
    :param sequences: those of the test; or, for each view, the totals of what its features count that stand out.
    :param drawn: sequences of the model, or ``None`` if it was not sampled.
    :param level: the p-value up to which the model is rejected, and a feature stands out.

    >>> from pyro_ksd import default_views
    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.fit_tests import goodness_of_fit, localize
    >>> data = random_walk(3, hold=0.3).draw(60, torch.Generator().manual_seed(0))
    >>> found = goodness_of_fit(random_walk(3, hold=0.1), data, default_views(), num_bootstrap=199)
    >>> sizes = effect_sizes(found, localize(found), data, None, level=0.05)
    >>> round(sizes[1].factor[0].item(), 1)  # of pairs of equal symbols
    3.1
    """
    reported = [one.features for one in places]
    found = []
    for index, own in enumerate(outstanding(result, reported, level)):
        features = reported[index]
        sizes = EffectSizes.unknown(0 if features is None else len(features.code))
        if own.counts:
            if isinstance(sequences, Sequences):
                totals = CountTotals.of(count_values(own.counts, sequences))
            else:
                totals = sequences[index]
            _fill_in(sizes, own, _jumps(result, result.views[index], own.counts), totals, drawn)
        found.append(sizes)
    return found


def outstanding(result: GoodnessOfFit, features: Sequence[TopFeatures | None], level: float) -> list[Outstanding]:
    """The features that stand out, for each view; none if the model is not rejected, by all views and by this one.

    :param features: those of each view with the largest shares, ``None`` for a view that does not report any.
    :param level: the p-value up to which the model is rejected, and a feature stands out.
    """
    size = result.sample.sequences.alphabet_size
    found = []
    for index, (view, own) in enumerate(zip(result.views, features, strict=True)):
        rejected = result.p_value_overall <= level and result.p_value[index] <= level
        if rejected and own is not None and view.kernel.feature_kind in _COUNTED:
            found.append(Outstanding(*_outstanding(view, own, level, size)))
        else:
            found.append(Outstanding(torch.zeros(0, dtype=torch.long), []))
    return found


def _outstanding(view: View, features: TopFeatures, level: float, alphabet_size: int) -> tuple[Tensor, list[Count]]:
    """The rows of the features that stand out, long ``[C]``, and what each of them counts."""
    kind = _COUNTED[view.kernel.feature_kind]
    if kind == "length":
        return (features.code == 0).nonzero().squeeze(1), [Count("length")] if (features.code == 0).any() else []
    known = (features.symbols < alphabet_size).all(1) & (features.p_value <= level)
    if kind in ("first", "last"):
        known &= (features.symbols >= 0).sum(1) == 1
    order = features.z.abs().argsort(descending=True, stable=True)
    rows = order[known[order]][:MOST_SIZED]
    ngrams = [tuple(code for code in row if code >= 0) for row in features.symbols[rows].tolist()]
    return rows, [Count(kind, ngram) for ngram in ngrams]  # type: ignore[arg-type]  # one of the kinds


def _fill_in(
    found: EffectSizes, own: Outstanding, jumps: list[Jumps], totals: CountTotals, drawn: Sequences | None
) -> None:
    """Fills in the sizes of the features that stand out.

    :param totals: those of their counts in the data.
    """
    tilts = tilt_each(jumps, len(own.counts), COVERAGE)
    found.factor[own.rows] = tilts.log_factor.exp()
    found.factor_low[own.rows] = tilts.low.exp()
    found.factor_high[own.rows] = tilts.high.exp()
    is_share = torch.tensor([count.kind in ("first", "last") for count in own.counts])
    rates = {"observed": mean_rates(totals, is_share, COVERAGE)}
    if drawn is not None:
        rates["expected"] = mean_counts(count_values(own.counts, drawn), is_share, COVERAGE)
        rates["ratio"] = rates["observed"].over(rates["expected"])
    for name, rate in rates.items():
        getattr(found, name)[own.rows] = rate.value
        getattr(found, f"{name}_low")[own.rows] = rate.low
        getattr(found, f"{name}_high")[own.rows] = rate.high


def _jumps(result: GoodnessOfFit, view: View, counts: Sequence[Count]) -> list[Jumps]:
    around = view.operator.neighborhood
    order = torch.randperm(len(result.sample.rows(around)), generator=seeded_generator(0))
    chunks = (chunk.scored for chunk in result.sample.chunks(around, order.tolist()))
    if counts[0].kind == "length":
        return scored_length_jumps(chunks, around)
    return enough_jumps(chunks, counts, ENOUGH)
