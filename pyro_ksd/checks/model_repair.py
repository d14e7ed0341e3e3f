# SPDX-License-Identifier: Apache-2.0
"""What to change in a model: the smallest set of factors with which it fits."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pyro_ksd.checks.check_setup import set_up_check
from pyro_ksd.checks.data_argument import as_sequences
from pyro_ksd.checks.end_argument import chosen_ends
from pyro_ksd.common.option_checks import check_level, found
from pyro_ksd.edits.counts import Count
from pyro_ksd.edits.neighborhoods import Neighborhood
from pyro_ksd.edits.weighted_edits import edit_bounds
from pyro_ksd.fit_tests.jumps import jumps_of
from pyro_ksd.fit_tests.tilt_selection import select_tilts
from pyro_ksd.fit_tests.tilting import LEAST_EVENTS
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.conversion import as_model
from pyro_ksd.models.duck_typing import adapted
from pyro_ksd.models.impossible_sequences import check_possible
from pyro_ksd.models.programs.marginal import Marginal
from pyro_ksd.models.wrappers.tilted import TiltedModel
from pyro_ksd.results.labels import spelled
from pyro_ksd.sequences.container import Sequences

_VIEWS = ("content-1", "content-2", "start", "end", "length")
_MOST = 200  # n-grams of one length
_ENOUGH = 2**21  # edits; all changes of all counts are kept


@dataclass(frozen=True)
class Factor:
    """By how much something must weigh more than in the model.

    :ivar name: the n-gram, ``^a`` for the first and ``a$`` for the last symbol, or ``length``.
    :ivar factor: of each occurrence; below 1 where the model has too much of it.
    :ivar low: the lower end of the 95 % interval.
    :ivar high: the upper end.
    :ivar count: what is weighted, in codes.
    """

    name: str
    factor: float
    low: float
    high: float
    count: Count

    def __str__(self) -> str:
        return f"{self.name} × {self.factor:.2f} ({self.low:.2f} to {self.high:.2f})"


@dataclass(frozen=True, eq=False)
class Repair:
    """Factors that make a model fit, and the model with them.

    :ivar factors: one for each fault, the most visible one first; none if the model fits.
    :ivar model: the model with the factors, the model itself if there are none. Nothing says yet that it fits: check it
        again, ``ksd_check(result.model, new_data)``.
    :ivar largest_score: the largest absolute score that is left among all that could have got a factor.
    :ivar threshold: up to which such a score is chance.
    """

    factors: tuple[Factor, ...]
    model: SequenceModel
    largest_score: float
    threshold: float

    @property
    def is_enough(self) -> bool:
        """Whether nothing is left that further factors of the same kinds could change."""
        return self.largest_score <= self.threshold

    def __str__(self) -> str:
        listed = "; ".join(map(str, self.factors)) or "no factors"
        left = "nothing else of this kind stands out" if self.is_enough else "these are not enough"
        return f"{listed}; {left}; check the result with ksd_check(result.model, new_data)"


def repair(
    model: Any,
    data: Any,
    *,
    views: str | Sequence[str] = _VIEWS,
    neighborhood: Neighborhood | None = None,
    parameters: Mapping[str, Tensor] | None = None,
    order: int | None = None,
    end: Any = None,
    marginal: Marginal | None = None,
    level: float = 0.05,
) -> Repair:
    r"""The smallest set of factors that makes the model fit, and the model with these factors.

    The model is tilted, :math:`p(x) \prod_k f_k^{c_k(x)}`, where :math:`c_k` counts an n-gram, a first or last symbol,
    or the symbols. Factors are added one by one, the largest score first, and estimated together. So a side effect of
    another fault gets no factor. A factor below 1 means that the feature is too frequent under the model. If the data
    have more than two million edits, the factors are estimated from a random part of the sequences.

    To see whether the repaired model fits, check it: ``ksd_check(result.model, new_data)``. A check of the same data
    would find too few faults, because the factors were estimated from these data. Hold out some data for the check, see
    :func:`~pyro_ksd.split`.

    :param model: what :func:`~pyro_ksd.ksd_check` takes. All data must be possible under it.
    :param data: :class:`~pyro_ksd.sequences.Sequences`, or what :meth:`~pyro_ksd.sequences.Sequences.of` takes.
    :param views: which features can get factors: ``"content-1"``, ``"content-2"`` and so on for n-grams, ``"start"``
        and ``"end"`` for the first and the last symbol, ``"length"``. The simplest sufficient factors are found only if
        their view is among these.
    :param neighborhood: the edits, as in :func:`~pyro_ksd.ksd_check`.
    :param parameters: values of a program's global sample sites and ``pyro.param`` sites, by name.
    :param order: as in :func:`~pyro_ksd.ksd_check`.
    :param end: the symbol with which every sequence ends, or a list of such symbols.
    :param marginal: how to integrate over continuous latents of each sequence.
    :param level: the largest probability that a true model gets any factor.

    >>> from pyro_ksd import MarkovSequence, repair
    >>> coin = torch.tensor([0.5, 0.5])
    >>> fair = MarkovSequence.from_transitions(coin, coin.expand(2, 2), stop=0.1)
    >>> sticky = MarkovSequence.from_transitions(coin, torch.tensor([[0.8, 0.2], [0.5, 0.5]]), stop=0.1)
    >>> data = sticky.draw(400, torch.Generator().manual_seed(0)).over("HT")
    >>> print(repair(fair, data, views="content-2"))  # the true factors are 0.2 / 0.5 and 0.8 / 0.5
    HT × 0.38 (0.33 to 0.45); HH × 1.63 (1.56 to 1.70); nothing else of this kind stands out; check the result with
    ksd_check(result.model, new_data)
    """
    check_level(level)
    sequences = as_sequences(data, adapted(model))
    ends = chosen_ends(end, neighborhood, sequences)
    named = [sequences.symbols[code] for code in ends] or None
    inner = as_model(model, sequences, parameters=parameters, order=order, end=named, marginal=marginal)
    setup = set_up_check(inner, sequences, ends, "content-1", neighborhood, None, draws=False)
    check_possible(setup.model, sequences, setup.impossible.log_joint)
    counts = _candidates(views, sequences)
    around = setup.views[0].operator.neighborhood
    jumps = jumps_of(setup.model, _thinned(sequences, around), around, counts)
    chosen = select_tilts(jumps, len(counts), level=level, coverage=0.95)
    kept = [counts[place] for place in chosen.chosen]
    tilted = chosen.tilts
    numbers = zip(tilted.log_factor.exp().tolist(), tilted.low.exp().tolist(), tilted.high.exp().tolist(), strict=True)
    factors = [Factor(_name(count, sequences), *own, count=count) for count, own in zip(kept, numbers, strict=True)]
    log_factors = dict(zip(kept, tilted.log_factor.tolist(), strict=True))
    repaired = TiltedModel(inner, log_factors) if kept else inner
    return Repair(tuple(factors), repaired, chosen.largest, chosen.threshold)


def _thinned(sequences: Sequences, neighborhood: Neighborhood) -> Sequences:
    """The sequences, or of large data some at random, so that all changes of all counts can be kept."""
    share = _ENOUGH / max(int(edit_bounds(neighborhood, sequences).sum()), 1)
    if share >= 1:
        return sequences
    order = torch.randperm(len(sequences), generator=torch.Generator().manual_seed(0))
    return sequences[order[: math.ceil(share * len(sequences))]]


def _candidates(views: str | Sequence[str], sequences: Sequences) -> list[Count]:
    """What may get a factor: of what each view counts, that which a handful of sequences contain."""
    names = [views] if isinstance(views, str) else views
    words = "names out of 'content-1', 'content-2' and so on, 'start', 'end' and 'length'"
    if not isinstance(names, Sequence) or not names:
        raise ValueError(f"views: expected {words}, found {found(views)}")
    counts: list[Count] = []
    for name in dict.fromkeys(names):
        if name == "length":
            counts.append(Count("length"))
        elif name in ("start", "end"):
            some = sequences[sequences.lengths > 0]
            column = torch.zeros_like(some.lengths) if name == "start" else some.lengths - 1
            symbols = some.tokens.gather(1, column[:, None])
            counts += [Count("first" if name == "start" else "last", gram) for gram in _frequent(symbols)]
        elif isinstance(name, str) and (match := re.fullmatch(r"content-([1-9]\d?)", name)):
            counts += [Count("ngram", gram) for gram in _frequent(_ngrams(sequences, int(match[1])))]
        else:
            raise ValueError(f"views: expected {words}, found {found(name)}")
    if not counts:
        raise ValueError(
            f"views: expected something that at least {LEAST_EVENTS:.0f} sequences contain, found nothing among the "
            f"{len(sequences)} sequences; pass more data, or other views"
        )
    return counts


def _ngrams(sequences: Sequences, size: int) -> Tensor:
    """The distinct n-grams of each sequence, long ``[M, size]``."""
    if sequences.width < size:
        return sequences.tokens.new_empty(0, size)
    windows = sequences.tokens.unfold(1, size, 1)
    inside = torch.arange(windows.shape[1]) + size <= sequences.lengths[:, None]
    owned: Tensor = torch.cat([inside.nonzero()[:, :1], windows[inside]], 1).unique(dim=0)
    return owned[:, 1:]


def _frequent(grams: Tensor) -> list[tuple[int, ...]]:
    """The most frequent of n-grams, long ``[M, size]``, those of at least a handful of sequences."""
    if not len(grams):
        return []
    distinct, times = grams.unique(dim=0, return_counts=True)
    best = times.argsort(descending=True, stable=True)[:_MOST]
    return [tuple(distinct[place].tolist()) for place in best if times[place] >= LEAST_EVENTS]


def _name(count: Count, sequences: Sequences) -> str:
    if count.kind == "length":
        return "length"
    shown = spelled(count.symbols, [str(symbol) for symbol in sequences.symbols])
    return {"first": f"^{shown}", "last": f"{shown}$"}.get(count.kind, shown)
