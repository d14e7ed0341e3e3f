# SPDX-License-Identifier: Apache-2.0
r"""Views with Stein features that are bounded whatever the model is, for bets on them.

All but ``length`` draw one symbol anew (:class:`~pyro_ksd.stein.HeatBathOperator`, substitutions). The weights at each
of the at most :math:`\ell` places are probabilities, so that a function :math:`f` of the sequence has
:math:`|(A_p f)(x)| \le \ell \sup |f(y) - f(x)|` over substitutions. For :math:`f = \langle g, \varphi \rangle`:

- frequencies of n-grams: a substitution changes at most :math:`t` windows, :math:`|f(y) - f(x)| \le t\,(\max g^+ +
  \max g^-) / \ell`;
- the first symbol: only one place changes it;
- ``surprise``: see :class:`~pyro_ksd.kernels.ConditionalSurpriseKernel`.

``length`` compares the lengths with those of draws, if the model can be sampled
(``stein/drawn_lengths``). Otherwise it counts how many sequences have at least :math:`k` symbols. With a
:class:`~pyro_ksd.stein.TailBlockOperator` and Barker's weights, growing and shrinking have rates of at most 1, and each
passes one threshold at most.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pyro_ksd.common.option_checks import check_number
from pyro_ksd.edits.neighborhoods import Substitutions, zs
from pyro_ksd.kernels.conditional_surprise import ConditionalSurpriseKernel
from pyro_ksd.kernels.frequency import FrequencyKernel
from pyro_ksd.kernels.length import LengthKernel
from pyro_ksd.kernels.start import StartKernel
from pyro_ksd.stein.operators import HeatBathOperator, TailBlockOperator
from pyro_ksd.stein.views import View

MOST_FEATURES = 5_000
"""A view of n-grams with more features than this is left out: a stream would hardly ever show one of them twice."""

_THRESHOLDS = torch.tensor(sorted({*range(1, 33), *(round(32 * 2 ** (k / 4)) for k in range(1, 60))}))
"""Lengths that are told apart: up to 32 each by itself, longer ones in steps of a fifth."""


@dataclass(frozen=True, eq=False)
class BoundedView:
    r"""A view and a bound of its Stein features.

    :param view: the view.
    :param reach: :math:`r` with :math:`|\langle g, \psi(x) \rangle| \le r\,(\max g^+ + \max g^-)`.
    :param num_features: how many features there are.
    :param from_draws: whether the features are compared with those of draws, not of edits.
    """

    view: View
    reach: float
    num_features: int
    from_draws: bool = False


def bounded_views(
    alphabet_size: int, *, locations: int | None = None, lengths: bool = True, drawn: bool = False
) -> list[BoundedView]:
    """The views of a monitor.

    :param alphabet_size: the number of symbols ``S``.
    :param locations: how many symbols, from the end, are drawn anew; ``None`` for all of them.
    :param lengths: whether the model gives probabilities to lengths.
    :param drawn: whether lengths are compared with those of draws.

    >>> [(one.view.name, one.num_features) for one in bounded_views(4)]
    [('content-1', 4), ('content-2', 16), ('content-3', 64), ('start', 5), ('surprise', 1), ('length', 91)]
    """
    check_number("alphabet_size", alphabet_size, least=1)
    redraws = HeatBathOperator(Substitutions(locations))
    found = []
    for t in (1, 2, 3):
        if alphabet_size**t <= MOST_FEATURES:
            found.append(BoundedView(View(f"content-{t}", redraws, FrequencyKernel(t)), float(t), alphabet_size**t))
    found.append(BoundedView(View("start", redraws, StartKernel()), 1.0, alphabet_size + 1))
    surprise = ConditionalSurpriseKernel()
    found.append(BoundedView(View("surprise", redraws, surprise), surprise.bound, 1))
    if lengths:
        tail = TailBlockOperator("barker", zs(locations=1).tail)
        kernel = LengthKernel(length_bins, _bin_names()) if drawn else LengthKernel(_reached, _threshold_names())
        found.append(BoundedView(View("length", tail, kernel), 1.0, len(kernel.names), from_draws=drawn))
    return found


def _reached(lengths: Tensor) -> Tensor:
    """Which thresholds some lengths reach, double ``[N, D]``."""
    return (lengths[:, None] >= _THRESHOLDS).double()


def _threshold_names() -> tuple[str, ...]:
    return tuple(f"at least {threshold} symbols" for threshold in _THRESHOLDS.tolist())


def length_bins(lengths: Tensor) -> Tensor:
    """The thresholds that some lengths lie between, one-hot, double ``[N, D]``."""
    place = torch.searchsorted(_THRESHOLDS, lengths, right=True)
    return torch.nn.functional.one_hot(place, len(_THRESHOLDS) + 1).double()


def _bin_names() -> tuple[str, ...]:
    first = [0, *_THRESHOLDS.tolist()]
    last = [threshold - 1 for threshold in first[1:]]
    names = [f"length {a}" if a == b else f"lengths {a} to {b}" for a, b in zip(first, last, strict=False)]
    return (*names, f"lengths from {first[-1]} on")
