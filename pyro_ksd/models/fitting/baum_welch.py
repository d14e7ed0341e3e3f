# SPDX-License-Identifier: Apache-2.0
"""Expectation maximization for hidden Markov models that stop, for several models at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from pyro_ksd.common.chunk_sizes import ENTRIES
from pyro_ksd.sequences.container import Sequences

_TINY = 1e-300  # in place of 0 as a divisor


@dataclass(frozen=True)
class HiddenParameters:
    """The parameters of ``R`` hidden Markov models, double.

    :param initial: ``[R, K]``.
    :param transition: ``[R, K, K]``, where the chain goes on.
    :param emission: ``[R, K, S]``.
    :param stop: ``[R, K]``.
    """

    initial: Tensor
    transition: Tensor
    emission: Tensor
    stop: Tensor

    @classmethod
    def at_random(cls, shape: tuple[int, int, int], mean_length: float, generator: torch.Generator) -> Self:
        """Independent points: rows that are uniform on the simplex, and states that stop about as often as the data.

        :param shape: the numbers of models, states and symbols.
        """
        models, states, symbols = shape

        def rows(*sizes: int) -> Tensor:
            exponential = -torch.rand(*sizes, dtype=torch.double, generator=generator).clamp(min=_TINY).log()
            return exponential / exponential.sum(-1, keepdim=True)

        share = torch.rand(models, states, dtype=torch.double, generator=generator)
        odds = 2 * share / mean_length
        return cls(
            rows(models, states),
            rows(models, states, states),
            rows(models, states, symbols),
            odds / (1 + odds),
        )

    def __getitem__(self, model: int) -> HiddenParameters:
        """One of the models, still with its dimension of models."""
        parts = (self.initial, self.transition, self.emission, self.stop)
        return HiddenParameters(*(part[model : model + 1] for part in parts))

    def log_penalty(self, pseudocount: float) -> Tensor:
        """The logarithm of the prior that adds a pseudocount to each count, up to a constant, ``[R]``."""
        if not pseudocount:
            return self.initial.new_zeros(len(self.initial))
        parts = (self.initial, self.transition, self.emission, self.stop, 1 - self.stop)
        return pseudocount * torch.stack([part.log().flatten(1).sum(1) for part in parts]).sum(0)


@dataclass(frozen=True)
class WeightedSequences:
    """Different sequences, the longest first, and how often each of them is in the data.

    :param columns: the symbols of each position, long ``[n_t]``, of the ``n_t`` sequences that are long enough.
    :param lengths: long ``[N]``.
    :param weights: double ``[N]``.
    """

    columns: list[Tensor]
    lengths: Tensor
    weights: Tensor

    def chunks(self, models: int, states: int) -> Iterator[WeightedSequences]:
        """Parts whose messages of all positions fit into bounded memory."""
        size = max(1, ENTRIES // max(1, models * states * len(self.columns)))
        for start in range(0, len(self.lengths), size):
            part = slice(start, start + size)
            columns = [column[part] for column in self.columns if len(column) > start]
            yield WeightedSequences(columns, self.lengths[part], self.weights[part])


def weighted(sequences: Sequences) -> WeightedSequences:
    """The different sequences among some, none of which is empty."""
    rows, counts = sequences.padded(-1).unique(dim=0, return_counts=True)
    lengths, order = (rows >= 0).sum(1).sort(descending=True, stable=True)
    rows = rows[order]
    columns = [rows[: int((lengths > position).sum()), position] for position in range(int(lengths[0]))]
    return WeightedSequences(columns, lengths, counts[order].double())


def improved(
    parameters: HiddenParameters, data: WeightedSequences, pseudocount: float = 0.0
) -> tuple[HiddenParameters, Tensor]:
    r"""One step of Baum and Welch, and the log-likelihood of the data before it.

    With :math:`N` for the expected numbers of first states, moves, emissions, ends and visits, given the data,

    .. math:: a_z \propto N_z + c, \quad T_{zz'} \propto N_{zz'} + c, \quad E_{zs} \propto N_{zs} + c, \quad
              \sigma_z = \frac{N^\text{end}_z + c}{N^\text{visit}_z + 2 c}

    for the pseudocount :math:`c`. The log-likelihood, plus :math:`c` times the sum of the logarithms of all parameters,
    never falls.

    :returns: the new parameters, and the log-likelihood under the old ones, ``[R]``.
    """
    first = torch.zeros_like(parameters.initial)
    moves = torch.zeros_like(parameters.transition)
    emitted = torch.zeros_like(parameters.emission.mT)  # [R, S, K]
    ends = torch.zeros_like(parameters.stop)
    log_likelihood = first.new_zeros(len(first))
    going = (1 - parameters.stop)[..., None] * parameters.transition
    by_symbol = parameters.emission.mT.contiguous()
    for chunk in data.chunks(*first.shape):
        ahead, scales, log_scale = _forward(parameters.initial, going, by_symbol, chunk)
        last = _last(ahead, chunk)
        final = (last * parameters.stop[:, None]).sum(-1)  # [R, N]
        log_likelihood += ((log_scale + final.log()) * chunk.weights).sum(1)
        at_end = parameters.stop[:, None] / final.clamp(min=_TINY)[..., None]
        ends += (last * at_end * chunk.weights[:, None]).sum(1)
        back = at_end[:, :0]
        for position in reversed(range(len(chunk.columns))):
            symbols = chunk.columns[position]
            back = torch.cat([back, at_end[:, back.shape[1] : len(symbols)]], 1)  # those that end here
            visits = ahead[position] * back * chunk.weights[: len(symbols), None]
            emitted.index_add_(1, symbols, visits)
            if not position:
                first += visits.sum(1)
                break
            arriving = by_symbol[:, symbols] * back / scales[position][..., None]
            before = ahead[position - 1][:, : len(symbols)]
            moves += before.mT @ (arriving * chunk.weights[: len(symbols), None])
            back = arriving @ going.mT
    visited = emitted.sum(1)
    return HiddenParameters(
        _rows(first + pseudocount, parameters.initial),
        _rows(going * moves + pseudocount, parameters.transition),
        _rows(emitted.mT + pseudocount, parameters.emission),
        _share(ends + pseudocount, visited + 2 * pseudocount, parameters.stop),
    ), log_likelihood


def _forward(
    initial: Tensor, going: Tensor, by_symbol: Tensor, data: WeightedSequences
) -> tuple[list[Tensor], list[Tensor], Tensor]:
    """The distribution of the state of each position, given the symbols up to it.

    :returns: these, ``[R, n_t, K]`` for each position; the probabilities of each symbol, given those before it and that
        the sequence goes on, times that of going on, ``[R, n_t]``; and the sums of their logarithms, ``[R, N]``.
    """
    message = initial[:, None].expand(-1, len(data.lengths), -1)
    log_scale = message.new_zeros(message.shape[:2])
    ahead, scales = [], []
    for position, symbols in enumerate(data.columns):
        message = message[:, : len(symbols)]
        joint = (message @ going if position else message) * by_symbol[:, symbols]
        total = joint.sum(-1)
        log_scale[:, : len(symbols)] += total.log()
        total = total.clamp(min=_TINY)
        message = joint / total[..., None]
        ahead.append(message)
        scales.append(total)
    return ahead, scales, log_scale


def _last(ahead: list[Tensor], data: WeightedSequences) -> Tensor:
    """The messages of the last position of each sequence, ``[R, N, K]``."""
    longer = [*(len(column) for column in data.columns[1:]), 0]
    parts = [message[:, count:] for message, count in zip(ahead, longer, strict=True)]
    return torch.cat(parts[::-1], 1)


def _rows(counts: Tensor, before: Tensor) -> Tensor:
    """Counts, divided by the sum of their row; rows without counts stay as they were."""
    return _share(counts, counts.sum(-1, keepdim=True), before)


def _share(counts: Tensor, total: Tensor, before: Tensor) -> Tensor:
    return torch.where(total > 0, (counts / total.clamp(min=_TINY)).clamp(max=1), before)
