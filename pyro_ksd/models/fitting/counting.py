# SPDX-License-Identifier: Apache-2.0
"""Markov chains fitted to data by counting."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from pyro_ksd.common.option_checks import found, is_real
from pyro_ksd.models.distributions.factor_table import check_order
from pyro_ksd.models.distributions.markov import MarkovSequence
from pyro_ksd.sequences.container import Sequences

_LEAST_WIDTH = 1000  # room for samples: a fitted chain is on average as long as the data
_TIMES_LONGEST = 100


def fit_markov(data: Any, order: int, *, pseudocount: float = 0.0) -> MarkovSequence:
    r"""The Markov chain with stopping that makes the data most probable.

    .. math:: \hat P(s \mid c) = \frac{N_{cs} + a}{\sum_r (N_{cr} + a)}

    where :math:`N_{cs}` is how often the symbol, or the stop, :math:`s` follows the context :math:`c` of ``order``
    symbols, and :math:`a` is the pseudocount. With :math:`a = 0` it is the maximum-likelihood estimate. In a context
    that the data never show, all symbols and the stop are equally probable. The empty sequence gets no pseudocount: it
    stays impossible if the data have none.

    :param data: :class:`~pyro_ksd.sequences.Sequences`, or what :meth:`~pyro_ksd.sequences.Sequences.of` takes.
    :param order: how many symbols the next one depends on.
    :param pseudocount: added to each count, so that what the data lack is not impossible.

    >>> fit_markov(["aab", "ab"], order=1).probs  # a: once a, twice b; b: always stop; start: always a
    tensor([[0.3333, 0.6667, 0.0000],
            [0.0000, 0.0000, 1.0000],
            [1.0000, 0.0000, 0.0000]], dtype=torch.float64)
    """
    check_pseudocount(pseudocount)
    sequences = Sequences.of(data)
    check_order(order, sequences.alphabet_size)
    base = sequences.alphabet_size + 1
    _, windows = _windows(sequences, order)
    code = windows[:, 0]
    for column in windows.unbind(1)[1:]:
        code = code * base + column
    counts = code.bincount(minlength=base ** (order + 1)).double() + pseudocount
    counts[-1] -= pseudocount  # start, then stop
    counts = counts.view([base] * (order + 1))
    total = counts.sum(-1, keepdim=True)
    probs = torch.where(total > 0, counts / total, 1 / base)
    longest = int(sequences.lengths.max())
    return MarkovSequence(probs, order=order, max_length=max(_LEAST_WIDTH, _TIMES_LONGEST * longest))


def fitted_log_likelihoods(sequences: Sequences, size: int, order: int, pseudocount: float = 0.0) -> Tensor:
    """The log-likelihood of each data set under the chain that :func:`fit_markov` fits to it, double ``[G]``.

    All chains are fitted at once, and none is built, so that memory does not depend on the number of contexts.

    :param sequences: data sets of ``size`` sequences each that follow each other.
    """
    base = sequences.alphabet_size + 1
    row, windows = _windows(sequences, order)
    *before, following = windows.unbind(1)
    start = (windows[:, :-1] == base - 1).all(1)
    context = group = row // size
    for column in before:  # numbered anew each time: powers of the base would soon be too large
        context = (context * base + column).unique(return_inverse=True)[1]
    transition = (context * base + following).unique(return_inverse=True)[1]
    count = transition.bincount()[transition] + pseudocount * ~(start & (following == base - 1))
    total = context.bincount()[context] + pseudocount * torch.where(start, base - 1, base)
    value: Tensor = (count.double() / total).log()
    return value.new_zeros(len(sequences) // size).index_add_(0, group, value)


def check_pseudocount(pseudocount: float) -> None:
    """Checks that a pseudocount can be added to counts."""
    if not is_real(pseudocount) or not 0 <= pseudocount < math.inf:
        raise ValueError(f"pseudocount: expected a number of at least 0, found {found(pseudocount)}")


def _windows(sequences: Sequences, order: int) -> tuple[Tensor, Tensor]:
    """All symbols and stops with the ``order`` symbols before each, ``S`` before the start and for the stop.

    :returns: their sequences, long ``[M]``, and the windows, long ``[M, order + 1]``.
    """
    boundary = sequences.alphabet_size
    windows = pad(sequences.padded(boundary), (order, 1), value=boundary).unfold(1, order + 1, 1)
    inside = torch.arange(sequences.width + 1) <= sequences.lengths[:, None]
    return inside.nonzero()[:, 0], windows[inside]
