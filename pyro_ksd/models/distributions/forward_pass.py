# SPDX-License-Identifier: Apache-2.0
"""The probability of sequences under hidden Markov models, with gradients and few steps in a row."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pyro_ksd.common.chunk_sizes import ENTRIES
from pyro_ksd.models.distributions.log_space import safe_log
from pyro_ksd.models.distributions.sampling import PAD

_LONG = 48  # steps, from which on pieces are worth while
_FEW = 2**11  # weights of a position of all sequences, up to which the number of steps decides how long all takes
_PIECE = 8  # symbols
_LARGEST_EXPONENT = 700.0  # of a double
_TINY = 1e-300  # in place of 0 as a divisor


@dataclass(frozen=True)
class HiddenChains:
    """The parameters of ``B`` hidden Markov models that stop, double.

    :param first: ``[B, K]``, the distribution of the first state.
    :param moves: ``[B, K, K + 1]``, the probabilities of the next state; the last column is that of the stop.
    :param by_symbol: ``[B, S, K]``, the probability of each symbol in each state.
    """

    first: Tensor
    moves: Tensor
    by_symbol: Tensor

    def moves_of(self, rows: Tensor) -> Tensor:
        """The moves under the models of some sequences, long ``[R]``: ``[K, K + 1]`` of one model, else ``[R, K, K + "
        "1]``."""
        return self.moves[0] if len(self.moves) == 1 else self.moves[rows]

    def emissions(self, tokens: Tensor, rows: Tensor) -> Tensor:
        """``[R, K]``, the probabilities of symbols, long ``[R]``."""
        return self.by_symbol.flatten(0, 1).index_select(0, rows * self.by_symbol.shape[1] + tokens)


@dataclass(frozen=True)
class _Walked:
    """Where walks from ``A`` distributions of the state lead, for each of ``R`` runs of symbols.

    :param last: ``[..., A, K + 1]``, the weights of the states after the last symbol, and of the stop.
    :param log_scale: ``[..., A]``, the logarithm of the factor that the weights lack.
    """

    last: Tensor
    log_scale: Tensor


def log_probabilities(chains: HiddenChains, tokens: Tensor, rows: Tensor) -> Tensor:
    r"""``log p`` of padded sequences, ``[R]``, differentiable in the parameters.

    The forward algorithm takes a step for each position. Where sequences are few and long, these steps take longer
    than the arithmetic in them. Then each sequence is cut into short pieces. All pieces are walked through at once,
    from each of the ``K`` states, and neighbors are joined until one piece is left, in :math:`O(\log T)` steps.

    :param tokens: long ``[R, T]``, padded with -1.
    :param rows: the model of each sequence, long ``[R]``.
    """
    states = chains.first.shape[1]
    width = tokens.shape[1]
    if width >= _LONG and len(tokens) * states**2 <= _FEW:
        return _by_pieces(chains, tokens, rows)
    size = max(1, ENTRIES // max(1, width * states))
    parts = [
        _by_steps(chains, part, own)
        for part, own in zip(tokens.split(size), rows.split(size), strict=True)
        if len(part)
    ]
    return torch.cat(parts) if parts else chains.first[0, :0]


def _by_steps(chains: HiddenChains, tokens: Tensor, rows: Tensor) -> Tensor:
    order = (tokens != PAD).sum(1).argsort(descending=True)
    walked = _walk(chains, chains.first[rows[order]][:, None], tokens[order], rows[order])
    value = safe_log(walked.last[:, 0, -1]) + walked.log_scale[:, 0]
    return torch.zeros_like(value).index_copy(0, order, value)


def _by_pieces(chains: HiddenChains, tokens: Tensor, rows: Tensor) -> Tensor:
    """As :func:`_by_steps`, by pieces that are joined."""
    states = chains.first.shape[1]
    pieces = torch.nn.functional.pad(tokens, (0, -tokens.shape[1] % _PIECE), value=PAD).unflatten(1, (-1, _PIECE))
    used = pieces[..., 0] != PAD
    count = used.shape[1]
    pieces = pieces.flatten(0, 1)
    # From the longest piece to the shortest. A piece without symbols changes nothing, and is left out at the joining.
    order = (pieces != PAD).sum(1).argsort(descending=True)
    starts = torch.eye(states, dtype=torch.double).expand(len(order), -1, -1)
    walked = _walk(chains, starts, pieces[order], rows.repeat_interleave(count)[order])
    last = torch.zeros_like(walked.last).index_copy(0, order, walked.last).unflatten(0, (-1, count))
    log_scale = torch.zeros_like(walked.log_scale).index_copy(0, order, walked.log_scale).unflatten(0, (-1, count))
    while count > 1:
        even = count - count % 2
        left = _Walked(last[:, 0:even:2], log_scale[:, 0:even:2])
        joined = _joined(left, _Walked(last[:, 1:even:2], log_scale[:, 1:even:2]), used[:, 1:even:2])
        last = torch.cat([joined.last, last[:, even:]], 1)
        log_scale = torch.cat([joined.log_scale, log_scale[:, even:]], 1)
        used = used[:, ::2]
        count = used.shape[1]
    start = torch.nn.functional.pad(chains.first[rows], (0, 1))[:, None]
    before = _Walked(start, start.new_zeros(start.shape[:2]))
    whole = _joined(before, _Walked(last[:, 0], log_scale[:, 0]), used[:, 0])
    return safe_log(whole.last[:, 0, -1]) + whole.log_scale[:, 0]


def _joined(left: _Walked, right: _Walked, is_used: Tensor) -> _Walked:
    """The walks through two pieces that follow each other; only through the first one where the other has no symbols.

    :param is_used: boolean, whether the second piece has symbols.
    """
    between = left.last[..., :-1]
    scale = right.log_scale[..., None, :]
    with torch.no_grad():  # the largest weight of a state between the pieces becomes about 1
        largest = (safe_log(between) + scale).amax(-1)
        largest = largest.where(largest > -torch.inf, torch.zeros_like(largest))
        factors = (scale - largest[..., None]).clamp(max=_LARGEST_EXPONENT).exp()
    joined, total = _rescaled((between * factors) @ right.last)
    log_scale = left.log_scale + largest + safe_log(total)
    kept = is_used[..., None]
    return _Walked(torch.where(kept[..., None], joined, left.last), torch.where(kept, log_scale, left.log_scale))


def _rescaled(weights: Tensor) -> tuple[Tensor, Tensor]:
    """Weights ``[..., n]``, divided by their sum, and the sum.

    The sum counts as a constant: it cancels in the result, and so do its gradients.
    """
    total = weights.detach() @ weights.new_ones(weights.shape[-1])
    return weights / total.clamp(min=_TINY)[..., None], total


def _walk(chains: HiddenChains, starts: Tensor, tokens: Tensor, rows: Tensor) -> _Walked:
    """Walks along runs of symbols.

    :param starts: ``[R, A, K]``, the distributions to start from.
    :param tokens: long ``[R, T]``, from the longest run to the shortest; nothing is left of a run without symbols.
    """
    inside = tokens.mT != PAD
    counts = [*inside.sum(1).tolist(), 0]
    symbols = tokens.mT[inside]
    owners = rows.expand(tokens.shape[1], -1)[inside]
    emissions = chains.emissions(symbols, owners).split(counts[:-1])
    moves = chains.moves_of(rows)
    vector = starts
    ended: list[Tensor] = [starts.new_zeros(len(tokens) - counts[0], starts.shape[1], starts.shape[2] + 1)]
    totals: list[Tensor] = []
    for emission, here, going in zip(emissions, counts[:-1], counts[1:], strict=True):
        if not here:
            break
        moved = (vector[:here] * emission[:, None]) @ (moves if moves.ndim == 2 else moves[:here])
        if going < here:
            ended.append(moved[going:])
        vector = moved[:going, :, :-1]
        vector, total = _rescaled(vector)
        totals.append(total)
    last, total = _rescaled(torch.cat(ended[::-1]))
    log_scale = safe_log(total)
    if totals:
        log_scale = log_scale.index_add(0, inside[1:].nonzero()[:, 1], safe_log(torch.cat(totals)))
    return _Walked(last, log_scale)
