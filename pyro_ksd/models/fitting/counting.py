# SPDX-License-Identifier: Apache-2.0
"""Markov chains fitted to data by counting."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from pyro_ksd.common.option_checks import check_flag, found, is_real
from pyro_ksd.common.user_warnings import warn_user
from pyro_ksd.models.distributions.factor_table import check_order
from pyro_ksd.models.distributions.markov import MarkovSequence
from pyro_ksd.sequences.container import Sequences

_LEAST_WIDTH = 1000  # room for samples: a fitted chain is on average as long as the data
_TIMES_LONGEST = 100
_FEW = 5  # times that a context was seen
_SEVERAL = 20  # contexts, from which on a warning is worth while


def fit_markov(data: Any, order: int, *, pseudocount: float = 0.0, backoff: bool = False) -> MarkovSequence:
    r"""A Markov chain with stopping, fitted to data by counting.

    .. math:: \hat P(s \mid c) = \frac{N_{cs} + a}{\sum_r (N_{cr} + a)}

    where :math:`N_{cs}` is how often the symbol, or the stop, :math:`s` follows the context :math:`c` of ``order``
    symbols, and :math:`a` is the pseudocount. With :math:`a = 0` it is the maximum-likelihood estimate, and in a
    context that the data never show, all symbols and the stop are equally probable.

    With ``backoff=True``, a context that was rarely seen takes its probabilities from shorter ones, by the
    interpolation of Witten and Bell [#witten-bell]_:

    .. math:: \hat P(s \mid c) = \frac{N_{cs} + D_c \, \hat P(s \mid c')}{N_c + D_c}

    where :math:`c'` is :math:`c` without its oldest symbol, :math:`N_c` is how often :math:`c` was seen, and
    :math:`D_c` is how many different symbols, the stop among them, followed it. The shortest context, the empty one, is
    interpolated with equal probabilities. It has nothing to tune and makes all symbols possible everywhere; choose it
    for orders from 2 on, where pseudocounts put too much weight on contexts that no data have.

    The empty sequence gets nothing from either: it stays impossible if the data have none.

    :param data: :class:`~pyro_ksd.sequences.Sequences`, or what :meth:`~pyro_ksd.sequences.Sequences.of` takes.
    :param order: how many symbols the next one depends on.
    :param pseudocount: added to each count, so that what the data lack is not impossible.
    :param backoff: whether to interpolate with shorter contexts; not together with a pseudocount.

    .. [#witten-bell] I. H. Witten and T. C. Bell, The zero-frequency problem: estimating the probabilities of novel
       events in adaptive text compression, IEEE Transactions on Information Theory 37(4), 1991.

    >>> fit_markov(["aab", "ab"], order=1).probs  # a: once a, twice b; b: always stop; start: always a
    tensor([[0.3333, 0.6667, 0.0000],
            [0.0000, 0.0000, 1.0000],
            [1.0000, 0.0000, 0.0000]], dtype=torch.float64)
    >>> fit_markov(["aab", "ab"], order=1, backoff=True).probs
    tensor([[0.3600, 0.5200, 0.1200],
            [0.1333, 0.1000, 0.7667],
            [0.8571, 0.1429, 0.0000]], dtype=torch.float64)
    """
    check_smoothing(pseudocount, backoff)
    sequences = Sequences.of(data)
    fitted, seen = fitted_chain(sequences, order, pseudocount, backoff)
    if not backoff:
        _warn_of_rare_contexts(seen, order)
    return fitted


def fitted_chain(
    sequences: Sequences, order: int, pseudocount: float = 0.0, backoff: bool = False
) -> tuple[MarkovSequence, Tensor]:
    """The chain that :func:`fit_markov` fits, without its warning; and how often each context was seen, ``[C]``."""
    check_order(order, sequences.alphabet_size)
    base = sequences.alphabet_size + 1
    _, windows = _windows(sequences, order)
    code = windows[:, 0]
    for column in windows.unbind(1)[1:]:
        code = code * base + column
    counts = code.bincount(minlength=base ** (order + 1)).double().view([base] * (order + 1))
    seen = counts.sum(-1).flatten()
    probs = _backed_off(counts) if backoff else _with_pseudocount(counts, pseudocount)
    return MarkovSequence(probs, order=order, max_length=room_for_samples(sequences)), seen


def room_for_samples(sequences: Sequences) -> int:
    """The width of samples of a model that was fitted to sequences."""
    return max(_LEAST_WIDTH, _TIMES_LONGEST * int(sequences.lengths.max()))


def _with_pseudocount(counts: Tensor, pseudocount: float) -> Tensor:
    added = counts + pseudocount
    added.view(-1)[-1] -= pseudocount  # start, then stop
    total = added.sum(-1, keepdim=True)
    return torch.where(total > 0, added / total, 1 / counts.shape[-1])


def _backed_off(counts: Tensor) -> Tensor:
    """Witten and Bell's interpolation of the counts of windows, ``[S + 1] * (order + 1)``.

    A context that begins before the start is shortened by all places before the start but one at once: they are there
    in every such context.
    """
    base = counts.shape[-1]
    has_empty = bool(counts.view(-1)[-1] > 0)
    levels = [counts]
    while levels[-1].ndim > 1:
        levels.append(levels[-1].sum(0))  # without the oldest symbol
    probs = counts.new_full((base,), 1 / base)
    for number, level in enumerate(reversed(levels)):
        shorter = probs.expand_as(level)
        if number == 1 and not has_empty:
            shorter = shorter.clone()
            shorter[-1, -1] = 0  # no stop at the start
            shorter[-1] /= shorter[-1].sum()
        total, distinct = level.sum(-1, keepdim=True), (level > 0).sum(-1, keepdim=True)
        mixed = (level + distinct * shorter) / (total + distinct)
        probs = torch.where(total > 0, mixed, shorter)
        if number > 1:
            probs[-1, -1] = shorter[-1, -1]  # the same context as with one place before the start
    return probs


def _warn_of_rare_contexts(seen: Tensor, order: int) -> None:
    contexts = int((seen > 0).sum())
    rare = int(((seen > 0) & (seen < _FEW)).sum())
    if 2 * rare > contexts >= _SEVERAL:
        warn_user(
            f"{rare} of the {contexts} contexts of {order} symbols in the data were seen fewer than {_FEW} times, so "
            "the probabilities after them are poorly estimated; pass backoff=True, which falls back to shorter "
            "contexts, lower order=, or use more data"
        )


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


def check_smoothing(pseudocount: float, backoff: bool) -> None:
    """Checks a pseudocount, and that only one way of smoothing is chosen."""
    check_pseudocount(pseudocount)
    check_flag("backoff", backoff)
    if backoff and pseudocount > 0:
        raise ValueError(f"pseudocount: expected 0 with backoff=True, found {pseudocount}; choose one of them")


def _windows(sequences: Sequences, order: int) -> tuple[Tensor, Tensor]:
    """All symbols and stops with the ``order`` symbols before each, ``S`` before the start and for the stop.

    :returns: their sequences, long ``[M]``, and the windows, long ``[M, order + 1]``.
    """
    boundary = sequences.alphabet_size
    windows = pad(sequences.padded(boundary), (order, 1), value=boundary).unfold(1, order + 1, 1)
    inside = torch.arange(sequences.width + 1) <= sequences.lengths[:, None]
    return inside.nonzero()[:, 0], windows[inside]
