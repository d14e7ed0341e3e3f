# SPDX-License-Identifier: Apache-2.0
r"""Tests by betting: evidence against a model that may be looked at at any time.

Under the model the Stein features :math:`\psi(x)` of a sequence have the mean 0. So with any direction :math:`g` that
was chosen before :math:`x` was seen, :math:`s = \langle g, \psi(x) \rangle / m` is a fair game, where :math:`m` makes
:math:`|s| \le 1`. Somebody who stakes the share :math:`\lambda` of their wealth on each sequence has

.. math:: W_n = \prod_{i \le n} (1 + \lambda s_i),

a martingale that starts at 1. By Ville's inequality the probability that it *ever* reaches :math:`1 / \alpha` is at
most :math:`\alpha`. A mean of such wealths, over shares :math:`\lambda` and views, is one as well: the *evidence*
(Shafer, 2021; Martinez-Taboada and Ramdas, 2024, for kernel Stein discrepancies).

For changes, the wealth never falls below what a new start would have: :math:`M_n = \max(M_{n-1}, 1)(1 + \lambda s_n)`.
It is at most the sum of the wealths of all starts, which grows by 1 a sequence on average. So as long as the model is
right, the mean number of sequences until :math:`M_n` reaches :math:`A` is at least :math:`A` (the e-detectors of Shin,
Ramdas and Rinaldo, 2022).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pyro_ksd.common.option_checks import check_instance, check_number, check_positive
from pyro_ksd.common.tensor_checks import check_tensor

BLOCK = 16
"""After how many sequences the directions are chosen anew. Blocks are counted from the first sequence of all, so that
the evidence does not depend on how the stream is cut."""

STAKES = torch.tensor([0.9, *(2.0**-k for k in range(1, 9))], dtype=torch.double)
"""The shares of the wealth that are staked."""

_CLEAR = 3.0  # standard errors from which on a feature has its full weight


@dataclass(frozen=True, eq=False)
class Bets:
    r"""The bets on the features of one view, after some sequences.

    The direction is :math:`g_u = \min(\max(z_u, -3), 3)` with the score
    :math:`z_u = \sum \psi_u / \sqrt{\sum \psi_u^2}` over the sequences before the block.

    :param reach: :math:`r` with :math:`|\langle g, \psi(x) \rangle| \le r\,(\max_u g_u^+ + \max_u g_u^-)` for every
        sequence, whatever the model is.
    :param total: ``[D]``, :math:`\sum \psi`; with forgetting, a discounted sum.
    :param squares: ``[D]``, :math:`\sum \psi^2`, likewise.
    :param direction: ``[D]``, that of the current block.
    :param log_wealth: ``[K]``, for each of ``STAKES``.
    :param memory: about how many sequences are remembered, while the wealth may start anew; ``None`` for all of them,
        and one start.

    >>> bets = Bets.at_start(1, reach=1.0)
    >>> psi = torch.full((1000, 1), 0.2, dtype=torch.double)
    >>> bets, log_evidence = bets.after(psi, begin=0)
    >>> bool(log_evidence[10] == 0), bool(log_evidence[-1] > 5)  # there is no direction in the first block
    (True, True)
    """

    reach: float
    total: Tensor
    squares: Tensor
    direction: Tensor
    log_wealth: Tensor
    memory: float | None = None

    @staticmethod
    def at_start(num_features: int, reach: float, memory: float | None = None) -> Bets:
        """Before the first sequence."""
        check_number("num_features", num_features, least=1)
        check_positive("reach", reach)
        if memory is not None:
            check_positive("memory", memory)
        nothing = torch.zeros(num_features, dtype=torch.double)
        return Bets(reach, nothing, nothing, nothing, torch.zeros_like(STAKES), memory)

    @property
    def z(self) -> Tensor:
        """The scores of the features, ``[D]``; 0 where nothing was seen."""
        return _score(self.total, self.squares)

    def after(self, psi: Tensor, begin: int) -> tuple[Bets, Tensor]:
        """The bets after further sequences, and the log of the evidence after each of them, ``[N]``.

        :param psi: ``[N, D]``, their Stein features.
        :param begin: how many sequences came before.
        """
        check_number("begin", begin, least=0)
        if isinstance(psi, Tensor) and not len(psi):
            return self, torch.zeros(0, dtype=torch.double)
        check_tensor("psi", psi, "N", len(self.total))
        blocks = _Blocks.of(psi, begin)
        totals, total = self._known_at_ends(self.total, blocks.sums(psi), blocks.last_is_whole)
        squares, square = self._known_at_ends(self.squares, blocks.sums(psi.square()), blocks.last_is_whole)
        directions = _score(totals, squares).clamp(-_CLEAR, _CLEAR)
        directions[0] = self.direction
        used = directions[:-1]
        most = self.reach * (used.clamp(min=0).amax(1) - used.clamp(max=0).amin(1))
        payoff = blocks.products(psi, used / most.clamp(min=torch.finfo(torch.double).tiny)[:, None])
        if bool((payoff.abs() > 1 + 1e-9).any()):
            raise ValueError(f"reach: expected a bound of the features, found {self.reach}, which they exceed")
        growth = (STAKES[:, None] * payoff.clamp(-1, 1)).log1p().cumsum(1)
        start = self.log_wealth[:, None]
        if self.memory is not None:  # or the best start until now: log M_n = growth_n + max(log M_0, -growth_j, j < n)
            before = torch.cat([growth.new_zeros(len(growth), 1), growth[:, :-1]], 1)
            start = torch.maximum(start, (-before).cummax(1).values)
        path = start + growth
        last = directions[-1] if blocks.last_is_whole else used[-1]
        after = replace(self, total=total, squares=square, direction=last, log_wealth=path[:, -1])
        return after, path.logsumexp(0) - math.log(len(STAKES))

    def _known_at_ends(self, at_start: Tensor, sums: Tensor, last_is_whole: bool) -> tuple[Tensor, Tensor]:
        """The sums before the first of ``M`` blocks and at the end of each, ``[M + 1, D]``; and what is remembered.

        :param sums: those within the blocks, ``[M, D]``.
        :param last_is_whole: whether the last block has ended. At the end of a block, a part of the sums is forgotten.
        """
        if self.memory is None:
            known = torch.cat([at_start[None], sums]).cumsum(0)
            return known, known[-1]
        kept = math.exp(-BLOCK / self.memory)
        found = [at_start]
        remembered = at_start
        for index, own in enumerate(sums):
            found.append(remembered + own)
            remembered = found[-1] * kept if last_is_whole or index < len(sums) - 1 else found[-1]
        return torch.stack(found), remembered


@dataclass(frozen=True)
class _Blocks:
    """How ``N`` consecutive sequences are cut into blocks of ``BLOCK``.

    :param head: the number of sequences that end a block which began earlier, or that make up a part of one.
    :param whole: the number of blocks after these.
    :param tail: the number of sequences after the last whole block.
    :param last_is_whole: whether the last of the sequences ends a block.
    """

    head: int
    whole: int
    tail: int
    last_is_whole: bool

    @staticmethod
    def of(psi: Tensor, begin: int) -> _Blocks:
        """Those of further sequences.

        :param begin: how many sequences came before.
        """
        head = min(len(psi), -begin % BLOCK)
        whole, tail = divmod(len(psi) - head, BLOCK)
        return _Blocks(head, whole, tail, not (begin + len(psi)) % BLOCK)

    def sums(self, values: Tensor) -> Tensor:
        """Sums within each block, ``[M, D]``, of values ``[N, D]``."""
        first, middle, last = self._parts(values)
        parts = [first.sum(0)[None]] if self.head else []
        parts.append(middle.view(self.whole, BLOCK, values.shape[1]).sum(1))
        return torch.cat([*parts, last.sum(0)[None]] if self.tail else parts)

    def products(self, values: Tensor, directions: Tensor) -> Tensor:
        """The products of the values of sequences, ``[N, D]``, with the directions of their blocks, ``[M, D]``."""
        first, middle, last = self._parts(values)
        own = directions[1:] if self.head else directions
        inner = middle.view(self.whole, BLOCK, values.shape[1]) @ own[: self.whole, :, None]
        return torch.cat([first @ directions[0], inner.flatten(), last @ directions[-1]])

    def _parts(self, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The values of the head, of all whole blocks, and of the tail."""
        first, middle, last = values.split([self.head, self.whole * BLOCK, self.tail])
        return first, middle, last


def _score(total: Tensor, squares: Tensor) -> Tensor:
    """Sums over their spreads; 0 where nothing was seen."""
    return torch.where(squares > 0, total / squares.sqrt(), 0.0)


def log_mean_evidence(paths: Sequence[Tensor]) -> Tensor:
    """The log of the mean evidence of several views, ``[N]``, which is evidence as well.

    :param paths: the log of the evidence of each view after each of ``N`` sequences.

    >>> log_mean_evidence([torch.tensor([0.0]), torch.tensor([4.0])]).item() < 4.0
    True
    """
    check_instance("paths", paths, Sequence, "the evidence of each view")
    return torch.stack(list(paths)).logsumexp(0) - math.log(len(paths))
