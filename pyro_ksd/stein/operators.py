# SPDX-License-Identifier: Apache-2.0
r"""Stein operators: they turn the log-ratios of edits into weights.

An operator acts on a function :math:`f` of sequences as
:math:`(A_p f)(x) = \sum_{y} w(x, y)\,(f(y) - f(x))` over the edits :math:`y` of :math:`x`. The weights are the rates of
a jump process that leaves :math:`p` invariant, hence :math:`\mathbb{E}_p[A_p f] = 0`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from pyro_ksd.common.compilation import is_compiled
from pyro_ksd.common.option_checks import check_instance
from pyro_ksd.edits.neighborhoods import Neighborhood, check_neighborhood, zs
from pyro_ksd.edits.splices import Edits, SpliceBlock
from pyro_ksd.kernels.length import LengthDistribution
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.balancing import Balancing, as_balancing


class Operator(ABC):
    """The edits to look at, and their weights given the log-ratios.

    >>> operator, data = ZanellaOperator(zs(locations=1), "metropolis"), Sequences.of(["ab"])
    >>> edits = operator.neighborhood.edits(data)
    >>> log_ratio = torch.tensor([0.0, -1.0, -1.0, 1.0])  # a model that prefers short sequences
    >>> for y, weight in zip(edits.apply(data).to_lists(), operator.weights(data, edits, log_ratio), strict=True):
    ...     print("".join(y), f"{weight:.2f}")
    aa 1.00
    aba 0.37
    abb 0.37
    a 1.00
    """

    neighborhood: Neighborhood  # its log-ratios are what the operator needs; a dataclass field of every operator

    @abstractmethod
    def weights(self, sequences: Sequences, edits: Edits, log_ratio: Tensor) -> Tensor:
        r"""The weights :math:`w(x, y)` of the edits.

        :param edits: the edits of the operator's ``neighborhood`` around the sequences.
        :param log_ratio: ``[E]``, :math:`\log p(y) - \log p(x)`.
        :returns: ``[E]``
        """

    def weights_each(self, sequences: Sequences, edits: Edits, log_ratio: Tensor) -> Tensor:
        """The weights under each of ``K`` models, ``[K, E]``, from log-ratios ``[K, E]``."""
        weights = torch.empty_like(log_ratio)
        for own, found in zip(log_ratio, weights, strict=True):  # one after the other: they stay in the cache
            found.copy_(self.weights(sequences, edits, own))
        return weights

    def under(self, model: SequenceModel) -> Operator:
        """The operator for another model, such as one that was fitted anew; the same if it knows only log-ratios."""
        return self


@dataclass(frozen=True, eq=False)
class ZanellaOperator(Operator):
    r"""The Zanella–Stein operator, :math:`w(x, y) = g(p(y) / p(x))` for :math:`y \in \partial x`.

    Baum, Kanagawa and Gretton (2023), section 3.

    :param neighborhood: the edits; all substitutions, insertions and deletions if left out.
    :param balancing: ``"barker"``, ``"mpf"``, ``"metropolis"`` or a function of the log-ratio.

    >>> operator = ZanellaOperator(zs(locations=1))
    >>> data = Sequences.of(["ab"])
    >>> operator.weights(data, operator.neighborhood.edits(data), torch.tensor([0.0, -1.0, -1.0, 1.0]))
    tensor([0.5000, 0.2689, 0.2689, 0.7311])
    """

    neighborhood: Neighborhood = field(default_factory=zs)
    balancing: str | Balancing = "barker"

    def __post_init__(self) -> None:
        check_neighborhood("neighborhood", self.neighborhood)
        object.__setattr__(self, "balancing", as_balancing(self.balancing))

    def weights(self, sequences: Sequences, edits: Edits, log_ratio: Tensor) -> Tensor:
        return self.balancing(log_ratio)  # type: ignore[operator]  # made a function in __post_init__


@dataclass(frozen=True, eq=False)
class HeatBathOperator(Operator):
    r"""Draws one symbol anew, given all others: :math:`w(x, y) = p(y) / \sum_{y'} p(y')`.

    The sum is over the sequences that differ from :math:`x` at most in the symbol that :math:`y` replaces, with
    :math:`x` among them: the weights are the probabilities of a symbol given the rest of the sequence. For a function
    of one symbol :math:`\psi(x) = \mathbb{E}[f \mid \text{rest}] - f(x)`, so this operator sees such functions with
    less noise than the Zanella–Stein operator. Lengths never change; other edits than substitutions have weight 0.

    Where the neighborhood restricts which symbols replace which, the sequences that differ in one symbol are not all
    neighbors of each other. There the sum has only the two terms :math:`p(x) + p(y)` (Barker's weights).

    :param neighborhood: with substitutions; all substitutions, insertions and deletions if left out.

    >>> operator, data = HeatBathOperator(zs(locations=1)), Sequences.of(["ab"], "abc")
    >>> edits = operator.neighborhood.edits(data)  # to aa and ac; aba, abb, abc; a
    >>> operator.weights(data, edits, torch.tensor([0.5, 0.25, 1.0, 1.0, 1.0, 1.0]).log())
    tensor([0.2857, 0.1429, 0.0000, 0.0000, 0.0000, 0.0000])
    """

    neighborhood: Neighborhood = field(default_factory=zs)

    def __post_init__(self) -> None:
        check_neighborhood("neighborhood", self.neighborhood)

    def weights(self, sequences: Sequences, edits: Edits, log_ratio: Tensor) -> Tensor:
        parts = zip(edits.blocks, edits.split(log_ratio), strict=True)
        weights = [self._block_weights(sequences, block, ratio) for block, ratio in parts]
        return torch.cat(weights) if weights else log_ratio

    def _block_weights(self, sequences: Sequences, block: SpliceBlock, log_ratio: Tensor) -> Tensor:
        if block.removed != 1 or block.growth:
            return torch.zeros_like(log_ratio)
        if not self.neighborhood.replaces_freely:
            return log_ratio.sigmoid()
        if is_compiled() and not log_ratio.requires_grad:
            from pyro_ksd.stein.compiled_weights import redrawn

            return redrawn(log_ratio, block.owner, block.start, sequences.tokens.shape)
        site = block.owner * sequences.width + block.start
        others = logsumexp_by_owner(log_ratio, site, len(sequences) * sequences.width)
        return (log_ratio - others.index_select(0, site).logaddexp(log_ratio.new_zeros(()))).exp()


@dataclass(frozen=True, eq=False)
class TailBlockOperator(Operator):
    r"""Jumps between a sequence and the block of all its extensions by one symbol.

    With :math:`P_\uparrow(x) = \sum_s p(x \cdot s)`, a sequence is extended at rate :math:`g(P_\uparrow(x) / p(x))`, to
    :math:`x \cdot s` with probability :math:`p(x \cdot s) / P_\uparrow(x)`, and shortened from :math:`x \cdot s` to
    :math:`x` at rate :math:`g(p(x) / P_\uparrow(x))`. Detailed balance holds block by block. The rates average over the
    last symbol, so for functions of the length the noise of the symbols cancels: this is the operator that sees the
    length of sequences, which the paper's operators hardly do.

    :param balancing: as for :class:`ZanellaOperator`.
    :param neighborhood: what replaces, appends and removes the last symbol: the
        :attr:`~pyro_ksd.edits.Neighborhood.tail` of a neighborhood. Left out, any symbol may come, and replace
        any other.

    >>> operator, data = TailBlockOperator(), Sequences.of(["ab"])
    >>> edits = operator.neighborhood.edits(data)  # to aa, aba, abb and a
    >>> operator.weights(data, edits, torch.tensor([0.0, -1.0, -1.0, 1.0]))  # from ab to aa there is no jump
    tensor([0.0000, 0.2119, 0.2119, 0.5761])
    """

    balancing: str | Balancing = "barker"
    neighborhood: Neighborhood = field(default_factory=lambda: zs(locations=1))

    def __post_init__(self) -> None:
        check_neighborhood("neighborhood", self.neighborhood)
        object.__setattr__(self, "balancing", as_balancing(self.balancing))

    def weights(self, sequences: Sequences, edits: Edits, log_ratio: Tensor) -> Tensor:
        ratios = edits.split(log_ratio)
        weights: list[Tensor] = []
        for first in range(0, len(ratios), 3):  # the tail of each of several models
            tail = slice(first, first + 3)
            weights += self._tail_weights(edits.blocks[tail], ratios[tail], len(sequences))
        return torch.cat(weights, -1)

    def weights_each(self, sequences: Sequences, edits: Edits, log_ratio: Tensor) -> Tensor:
        return self.weights(sequences, edits, log_ratio)  # so few edits that all models take hardly longer than one

    def _tail_weights(self, blocks: Sequence[SpliceBlock], ratios: Sequence[Tensor], count: int) -> list[Tensor]:
        """The weights of what replaces, appends and removes the last symbol of ``count`` sequences."""
        _, append, remove = blocks
        swap_ratio, append_ratio, remove_ratio = ratios
        up, siblings = block_ratios(blocks, ratios, count)
        rate_up = self._balanced(up)
        share = (append_ratio - up[..., append.owner]).exp().nan_to_num(nan=0.0)
        rate_down = self._balanced(remove_ratio - siblings[..., remove.owner])
        return [torch.zeros_like(swap_ratio), rate_up[..., append.owner] * share, rate_down]

    def _balanced(self, log_ratio: Tensor) -> Tensor:
        """The balancing function of log-ratios of any shape; a user's own takes ``[E]``."""
        found: Tensor = self.balancing(log_ratio.flatten())  # type: ignore[operator]  # made a function in __post_init__
        return found.view_as(log_ratio)


@dataclass(frozen=True, eq=False)
class LengthOperator(Operator):
    r"""Jumps to longer and to shorter sequences, at rates that depend on the length alone.

    With :math:`P` the distribution of the length under the model, a sequence of length :math:`j` is extended by one
    symbol at rate :math:`g(P(j + 1) / P(j))`, and shortened at rate :math:`g(P(j - 1) / P(j))`. So the length is a
    birth–death process that leaves :math:`P` invariant. For functions of the length, these are the rates of the
    :class:`TailBlockOperator`, averaged over all sequences of a length: where the probability to stop depends on the
    symbols, those vary from sequence to sequence and hide the length, these do not. Other functions have no Stein
    identity here. The appended symbol has the model's probability.

    :param distribution: :math:`P`. Lengths beyond it have the rates of its first or last length, and do not lead
        further away.
    :param balancing: as for :class:`ZanellaOperator`.
    :param neighborhood: as for :class:`TailBlockOperator`; it must be able to change all lengths.

    >>> twice = LengthDistribution(1, torch.tensor([1 / 3, 2 / 3], dtype=torch.double))
    >>> operator, data = LengthOperator(twice), Sequences.of(["a"], "ab")
    >>> edits = operator.neighborhood.edits(data)  # to b, aa, ab and the empty sequence
    >>> operator.weights(data, edits, torch.tensor([0.0, 0.75, 0.25, 0.5], dtype=torch.double).log())
    tensor([0.0000, 0.5000, 0.1667, 0.0000], dtype=torch.float64)
    """

    distribution: LengthDistribution
    balancing: str | Balancing = "barker"
    neighborhood: Neighborhood = field(default_factory=lambda: zs(locations=1))

    def __post_init__(self) -> None:
        check_instance("distribution", self.distribution, LengthDistribution, "a LengthDistribution")
        check_neighborhood("neighborhood", self.neighborhood)
        if not changes_lengths(self.neighborhood, self.distribution):
            raise ValueError(
                "neighborhood: expected edits that add a symbol to every sequence of the distribution, and remove one "
                "of all but the shortest, found others; use zs(locations=1), or a TailBlockOperator"
            )
        object.__setattr__(self, "balancing", as_balancing(self.balancing))

    def weights(self, sequences: Sequences, edits: Edits, log_ratio: Tensor) -> Tensor:
        _, append, remove = edits.blocks
        swap_ratio, append_ratio, _ = edits.split(log_ratio)
        steps = self.distribution.probability.log().diff()
        longer = torch.nn.functional.pad(self.balancing(steps), (0, 1))  # type: ignore[operator]  # see __post_init__
        shorter = torch.nn.functional.pad(self.balancing(-steps), (1, 0))  # type: ignore[operator]
        place = (sequences.lengths - self.distribution.shortest).clamp(0, len(steps))
        share = _shares(append_ratio, append.owner, len(sequences))
        return torch.cat(
            [torch.zeros_like(swap_ratio), longer[place][append.owner] * share, shorter[place][remove.owner]]
        )

    def under(self, model: SequenceModel) -> Operator:
        found = model.length_distribution()
        return self if found is None else replace(self, distribution=found.without_gaps())


def changes_lengths(neighborhood: Neighborhood, distribution: LengthDistribution) -> bool:
    """Whether edits can add a symbol to every sequence, and remove one of all that are not of the shortest length.

    >>> may_be_empty = LengthDistribution(0, torch.tensor([0.5, 0.5], dtype=torch.double))
    >>> changes_lengths(zs(), may_be_empty), changes_lengths(zs(insertable="a"), may_be_empty)
    (True, False)
    """
    least = neighborhood.least_changed
    return least is not None and least <= distribution.shortest


def _shares(log_ratio: Tensor, owner: Tensor, count: int) -> Tensor:
    """The probability of each edit among those of its owner, equal ones if all are impossible; ``[E]``."""
    total = logsumexp_by_owner(log_ratio, owner, count)
    even = 1 / owner.bincount(minlength=count).to(log_ratio)
    return torch.where((total == -torch.inf)[owner], even[owner], (log_ratio - total[owner]).exp())


def block_ratios(blocks: Sequence[SpliceBlock], ratios: Sequence[Tensor], count: int) -> tuple[Tensor, Tensor]:
    r"""How probable blocks of sequences are, each as a log-ratio to a sequence.

    :param blocks: what replaces, appends and removes the last symbol of ``count`` sequences.
    :param ratios: the log-ratios of these edits, ``[..., E]`` each.
    :returns: ``[..., count]`` each, those of all extensions by one symbol, :math:`\log P_\uparrow(x) / p(x)`, and of
        all sequences with any last symbol in place of its own, :math:`\log P_\uparrow(x^-) / p(x)` with :math:`x^-`
        without it.
    """
    swap, append, _ = blocks
    swap_ratio, append_ratio, _ = ratios
    up = logsumexp_by_owner(append_ratio, append.owner, count)
    siblings = logsumexp_by_owner(swap_ratio, swap.owner, count).logaddexp(swap_ratio.new_zeros(()))
    return up, siblings


def logsumexp_by_owner(values: Tensor, owner: Tensor, count: int) -> Tensor:
    """``[..., count]``: the log of the sum of exponentials ``[..., E]`` of each owner, ``-inf`` without any."""
    shape = (*values.shape[:-1], count)
    top = values.new_full(shape, -torch.inf).scatter_reduce_(-1, owner.expand_as(values), values, "amax")
    safe = top.masked_fill(top == -torch.inf, 0.0)
    return values.new_zeros(shape).index_add_(-1, owner, (values - safe[..., owner]).exp()).log() + safe
