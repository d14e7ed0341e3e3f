# SPDX-License-Identifier: Apache-2.0
"""Hidden Markov models that stop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor
from torch.distributions import constraints

from pyro_ksd.edits.splices import Edits, SpliceBlock, check_edits
from pyro_ksd.kernels.length import LengthDistribution
from pyro_ksd.models.distributions.base import SequenceDistribution
from pyro_ksd.models.distributions.forward_pass import HiddenChains, log_probabilities
from pyro_ksd.models.distributions.log_space import safe_log, subtract
from pyro_ksd.models.distributions.parameter_checks import (
    Numbers,
    align,
    as_parameter,
    check_probabilities,
    check_shape,
    last_size,
)
from pyro_ksd.models.distributions.sampling import PAD, cumulative, grow, pick
from pyro_ksd.models.distributions.stopping_lengths import chain_lengths
from pyro_ksd.sequences.container import Sequences

_PIECE = 2**12  # edits at a time: their messages stay in the cache

Message = tuple[Tensor, Tensor]
"""A non-negative vector over the states and the final one, ``[R, K + 1]``, and the logarithm of its scale, ``[R]``."""


class HiddenMarkovSequence(SequenceDistribution):
    r"""A hidden Markov model with ``K`` states and ``S`` symbols that may stop after each symbol.

    In state :math:`z` it emits :math:`s` with probability :math:`E_{zs}`; then it stops with probability
    :math:`\sigma_z`, or moves to :math:`z'` with probability :math:`(1 - \sigma_z) T_{zz'}`. With a final state
    :math:`F`, the states summed out,

    .. math:: p(x) = a^\top M_{x_0} \cdots M_{x_{\ell-1}} e_F, \qquad
              M_s = \operatorname{diag}(E_{\cdot s}, 0) \begin{pmatrix} (1 - \sigma) T & \sigma \\ 0 & 0 \end{pmatrix}.

    The vectors are rescaled at each step. It is never empty.

    :param initial: ``[*, K]``, the distribution :math:`a` of the first state.
    :param transition: ``[*, K, K]``, the distribution of the next state where the chain goes on.
    :param emission: ``[*, K, S]``, the distribution of the symbol in each state.
    :param stop: ``[*, K]``, the probability of stopping in each state, or one number for all.
    :param max_length: the width of samples; drawing a longer sequence is an error.

    >>> import torch
    >>> model = HiddenMarkovSequence(
    ...     initial=torch.tensor([1.0, 0.0]),
    ...     transition=torch.tensor([[0.0, 1.0], [1.0, 0.0]]),
    ...     emission=torch.tensor([[1.0, 0.0], [0.5, 0.5]]),
    ...     stop=0.5,
    ... )
    >>> model.log_prob(torch.tensor([[0, -1], [0, 1], [1, -1], [-1, -1]])).exp()
    tensor([0.5000, 0.1250, 0.0000, 0.0000])
    """

    arg_constraints = {  # noqa: RUF012
        "initial": constraints.simplex,
        "transition": constraints.independent(constraints.simplex, 1),
        "emission": constraints.independent(constraints.simplex, 1),
        "stop": constraints.independent(constraints.unit_interval, 1),
    }

    def __init__(
        self,
        initial: Numbers,
        transition: Numbers,
        emission: Numbers,
        stop: Numbers | float,
        *,
        max_length: int = 1000,
        validate_args: bool | None = None,
    ) -> None:
        initial = as_parameter("initial", initial)
        transition = as_parameter("transition", transition)
        emission = as_parameter("emission", emission)
        states = last_size("initial", initial)
        symbols = last_size("emission", emission)
        check_shape("initial", initial, states)
        stopping = as_parameter("stop", stop, initial.dtype).to(initial.dtype)
        if stopping.ndim == 0:
            stopping = stopping.expand(states)
        check_shape("transition", transition, states, states)
        check_shape("emission", emission, states, symbols)
        check_shape("stop", stopping, states)
        if self._validating(validate_args):
            check_probabilities("initial", initial)
            check_probabilities("transition", transition)
            check_probabilities("emission", emission)
            check_probabilities("stop", stopping, sums=False)
        batch_shape, (self._initial, self._transition, self._emission, self._stop) = align(
            initial=(initial, 1), transition=(transition, 2), emission=(emission, 2), stop=(stopping, 1)
        )
        # Products over many steps: in double precision, whatever the parameters have.
        stops = self._stop.double()[..., None]
        self._moves = torch.cat([(1 - stops) * self._transition, stops], -1)
        self._by_symbol = self._emission.mT.double().contiguous()
        self._first = torch.nn.functional.pad(self._initial.double(), (0, 1))
        super().__init__(symbols, max_length, batch_shape, validate_args, self._initial.dtype)

    @property
    def initial(self) -> Tensor:
        """``batch_shape + [K]``."""
        return self._expanded(self._initial)

    @property
    def transition(self) -> Tensor:
        """``batch_shape + [K, K]``."""
        return self._expanded(self._transition)

    @property
    def emission(self) -> Tensor:
        """``batch_shape + [K, S]``."""
        return self._expanded(self._emission)

    @property
    def stop(self) -> Tensor:
        """``batch_shape + [K]``."""
        return self._expanded(self._stop)

    def _log_prob(self, tokens: Tensor, rows: Tensor) -> Tensor:
        return log_probabilities(HiddenChains(self._first[:, :-1], self._moves, self._by_symbol), tokens, rows)

    @torch.no_grad()
    def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
        self._check_one_model_for(sequences)
        check_edits(edits, sequences)
        tokens = sequences.padded(PAD)
        messages = list(self._forward(tokens, self._flat_rows(torch.Size([len(sequences)]))))
        old = _final(messages[-1])
        ahead = _stacked(messages)
        back = _stacked(list(self._backward(tokens))[::-1])
        parts = [self._block_ratio(block, ahead, back, old, len(messages)) for block in edits.pieces(_PIECE)]
        return torch.cat(parts) if parts else self._first[0, :0]

    def _block_ratio(self, block: SpliceBlock, ahead: Message, back: Message, old: Tensor, places: int) -> Tensor:
        """Messages up to the splice and from behind it stay; only the inserted symbols lie between."""
        first = block.owner * places + block.start
        message = ahead[0].index_select(0, first), ahead[1].index_select(0, first)
        rows = torch.zeros_like(first)
        for symbol in block.inserted.unbind(1):
            message = self._advance(message, rows, symbol)
        last = first + block.removed
        overlap = (message[0] * back[0].index_select(0, last)).sum(-1)
        new = safe_log(overlap) + message[1] + back[1].index_select(0, last)
        return subtract(new, old.index_select(0, block.owner))

    def _forward(self, tokens: Tensor, rows: Tensor) -> Iterator[Message]:
        """The messages before each position, ``T + 1`` in all; they stay as they are after the end."""
        message = self._first[rows], self._first.new_zeros(len(rows))
        yield message
        for symbol in tokens.unbind(1):
            inside = symbol != PAD
            moved = self._advance(message, rows, symbol.clamp(min=0))
            message = torch.where(inside[:, None], moved[0], message[0]), torch.where(inside, moved[1], message[1])
            yield message

    def _backward(self, tokens: Tensor) -> Iterator[Message]:
        """The messages from each position to the end, the last position first, ``T + 1`` in all; for one model."""
        final = self._first.new_zeros(len(tokens), self._moves.shape[-1])
        final[:, -1] = 1
        message = final, final.new_zeros(len(tokens))
        yield message
        for symbol in reversed(tokens.unbind(1)):
            inside = symbol != PAD
            emitted = self._by_symbol[0, symbol.clamp(min=0)] * (message[0] @ self._moves[0].T)
            moved = _rescaled(torch.nn.functional.pad(emitted, (0, 1)), message[1])
            message = torch.where(inside[:, None], moved[0], message[0]), torch.where(inside, moved[1], message[1])
            yield message

    def _advance(self, message: Message, rows: Tensor, symbol: Tensor) -> Message:
        emission = self._by_symbol.flatten(0, 1).index_select(0, rows * self.alphabet_size + symbol)
        emitted = message[0][:, :-1] * emission
        if len(self._moves) == 1:
            return _rescaled(emitted @ self._moves[0], message[1])
        return _rescaled((emitted[:, None] @ self._moves[rows]).squeeze(1), message[1])

    @torch.no_grad()
    def length_distribution(self) -> LengthDistribution | None:
        if len(self._moves) > 1:
            return None
        moves = self._moves[0, :, :-1]
        states = len(moves)
        # A sequence has a symbol before it can stop: the length without it.
        rest = chain_lengths(self._first[0, :-1], self._moves[0, :, -1], lambda alive: alive @ moves, states**2)
        return None if rest is None else replace(rest, shortest=rest.shortest + 1)

    def _generate(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        rows = self._flat_rows(shape)
        initial = cumulative(self._initial)
        transition = cumulative(self._transition)
        emission = cumulative(self._emission)
        state = pick(initial[rows], generator)

        def step(position: int, alive: Tensor) -> Tensor:
            row = rows[alive]
            before = state[alive]
            if position:
                state[alive] = pick(transition[row, before], generator)
            symbol = pick(emission[row, state[alive]], generator)
            if not position:
                return symbol
            uniform = torch.rand(len(alive), dtype=torch.double, generator=generator)
            return symbol.masked_fill(uniform < self._stop[row, before], PAD)

        return grow(len(rows), self.max_length, step)


def _rescaled(vector: Tensor, log_scale: Tensor) -> Message:
    total = vector.sum(-1)
    divisor = total.where(total > 0, torch.ones_like(total))
    return vector / divisor[:, None], log_scale + safe_log(total)


def _final(message: Message) -> Tensor:
    return safe_log(message[0][:, -1]) + message[1]


def _stacked(messages: list[Message]) -> Message:
    """Messages of all positions, flat with the position running fastest."""
    vectors, log_scales = (torch.stack(parts, 1) for parts in zip(*messages, strict=True))
    return vectors.flatten(0, 1), log_scales.flatten()
