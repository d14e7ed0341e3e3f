# SPDX-License-Identifier: Apache-2.0
r"""How the next symbol is sampled: temperature, top-k, top-p and repetition penalty.

Text is rarely sampled from the distribution that a network predicts. It is sampled from a transformed one, and *which*
transformation was used is part of the model. The rules of this module transform the scores (logits) of the next symbol
in the same way as the package ``transformers``, ties included.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pyro_ksd.common.option_checks import check_instance, check_number, check_positive, found

_ROUNDINGS = 32  # by so many units of rounding a logit may change with the batch that it is computed in


@dataclass(frozen=True, eq=False)
class Scores:
    """The scores of the next symbols after ``T`` prefixes of each of ``N`` sequences.

    :param strict: ``[N, T, S]``; ``-inf`` for symbols that are impossible.
    :param lenient: the same, but a symbol is possible if it would be after rounding.
    :param codes: long ``[N, L]``, what the network has seen.
    :param last: long ``[N, T]``, which of the codes is the last of each prefix.
    :param rounding: by how much the scores may differ from one batch to another, by rounding alone; a scalar.
    """

    strict: Tensor
    lenient: Tensor
    codes: Tensor
    last: Tensor
    rounding: Tensor

    @staticmethod
    def of(logits: Tensor, codes: Tensor, last: Tensor) -> Scores:
        """The scores before any rule, from logits ``[N, T, S]``, in single precision at least."""
        scores = logits if logits.dtype == torch.double else logits.float()
        return Scores(scores, scores, codes, last, rounding(logits))


class SamplingRule(ABC):
    """A transformation of the scores of the next symbol. Derive your own rule from it.

    >>> from dataclasses import replace
    >>> import torch
    >>> class Without(SamplingRule):
    ...     "Makes one symbol impossible."
    ...     def __init__(self, code):
    ...         self.code = torch.tensor(code)
    ...     def apply(self, scores):
    ...         strict, lenient = (own.index_fill(-1, self.code, -torch.inf) for own in (scores.strict, scores.lenient))
    ...         return replace(scores, strict=strict, lenient=lenient)
    >>> after_rules([Without(1)], torch.tensor([[[3.0, 1.0, 2.0]]]), torch.tensor([[0]]), torch.tensor([[0]])).strict
    tensor([[[3., -inf, 2.]]])
    """

    @abstractmethod
    def apply(self, scores: Scores) -> Scores:
        """The scores after the rule."""


@dataclass(frozen=True)
class Temperature(SamplingRule):
    r"""Divides the scores by a temperature: below 1, probable symbols become more probable.

    .. math:: p'(s) \propto p(s)^{1 / \text{temperature}}

    >>> import torch
    >>> moves = torch.tensor([[0.8, 0.2], [0.8, 0.2]])
    >>> scores = Scores.of(moves.log()[None], torch.tensor([[0, 1]]), torch.tensor([[0, 1]]))
    >>> Temperature(0.5).apply(scores).strict.softmax(-1)[0, 0]  # 0.64 : 0.04
    tensor([0.9412, 0.0588])
    """

    temperature: float

    def __post_init__(self) -> None:
        check_positive("temperature", self.temperature)

    def apply(self, scores: Scores) -> Scores:
        strict = scores.strict / self.temperature
        lenient = strict if scores.lenient is scores.strict else scores.lenient / self.temperature
        return Scores(strict, lenient, scores.codes, scores.last, scores.rounding / self.temperature)


@dataclass(frozen=True)
class RepetitionPenalty(SamplingRule):
    r"""Makes symbols less probable that the network has seen before, in the prompt or in the sequence.

    .. math:: z'(s) = \begin{cases} z(s) / \text{penalty} & z(s) \ge 0 \\ z(s) \cdot \text{penalty} & z(s) < 0
        \end{cases} \quad \text{if } s \text{ was seen}

    (Keskar et al., 2019, *CTRL*). This depends on the scores themselves and not only on their differences, so the
    network must give the same logits as the one that was sampled, and not log-probabilities.

    >>> import torch
    >>> scores = Scores.of(torch.tensor([[[2.0, -1.0, 1.0]]]), torch.tensor([[0, 1]]), torch.tensor([[1]]))
    >>> RepetitionPenalty(2.0).apply(scores).strict
    tensor([[[ 1., -2.,  1.]]])
    """

    penalty: float

    def __post_init__(self) -> None:
        check_positive("penalty", self.penalty)

    def apply(self, scores: Scores) -> Scores:
        seen = self._seen(scores)
        strict = self._penalized(scores.strict, seen)
        lenient = strict if scores.lenient is scores.strict else self._penalized(scores.lenient, seen)
        larger = max(self.penalty, 1 / self.penalty)
        return Scores(strict, lenient, scores.codes, scores.last, scores.rounding * larger)

    def _penalized(self, values: Tensor, seen: Tensor) -> Tensor:
        penalized = torch.where(values < 0, values * self.penalty, values / self.penalty)
        return torch.where(seen, penalized, values)

    @staticmethod
    def _seen(scores: Scores) -> Tensor:
        """Which symbols occur in each prefix, boolean ``[N, T, S]``."""
        (num_sequences, length), size = scores.codes.shape, scores.strict.shape[-1]
        places = torch.arange(length).expand(num_sequences, -1)
        # Prompts may have codes that are no symbols, which get a column of their own.
        first = torch.full((num_sequences, size + 1), length)
        first.scatter_reduce_(1, scores.codes.clamp(max=size), places, "amin")
        return first[:, None, :size] <= scores.last[..., None]


class _Truncation(SamplingRule):
    """A rule that makes symbols with small scores impossible."""

    @abstractmethod
    def _removed(self, values: Tensor, slack: float) -> Tensor:
        """Which symbols become impossible, boolean ``[N, T, S]``.

        :param slack: by how much sums of probabilities may be wrong, so that fewer symbols become impossible.
        """

    def apply(self, scores: Scores) -> Scores:
        removed = self._removed(scores.strict, 0.0)
        surely_removed = self._removed(scores.strict, float(scores.rounding)) | (scores.strict == -torch.inf)
        lowest = scores.strict.masked_fill(surely_removed, torch.inf).amin(-1, keepdim=True)
        lenient = scores.lenient.masked_fill(scores.lenient.double() < lowest.double() - scores.rounding, -torch.inf)
        strict = scores.strict.masked_fill(removed, -torch.inf)
        return Scores(strict, lenient, scores.codes, scores.last, scores.rounding)


@dataclass(frozen=True)
class TopK(_Truncation):
    """Makes all but the ``k`` most probable symbols impossible, and those that are as probable as the ``k``-th.

    >>> import torch
    >>> scores = Scores.of(torch.tensor([[[3.0, 1.0, 2.0, 2.0]]]), torch.tensor([[0]]), torch.tensor([[0]]))
    >>> TopK(2).apply(scores).strict
    tensor([[[3., -inf, 2., 2.]]])
    """

    k: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", check_number("k", self.k, least=1))

    def _removed(self, values: Tensor, slack: float) -> Tensor:
        return values < values.topk(min(self.k, values.shape[-1]), -1).values[..., -1:]


@dataclass(frozen=True)
class TopP(_Truncation):
    """Keeps the most probable symbols that together have at least the probability ``p`` (nucleus sampling).

    The least probable symbols become impossible as long as their sum is at most ``1 - p`` (Holtzman et al., 2020).

    >>> import torch
    >>> scores = torch.tensor([[[0.5, 0.1, 0.3, 0.1]]]).log()
    >>> kept = TopP(0.75).apply(Scores.of(scores, torch.tensor([[0]]), torch.tensor([[0]])))
    >>> kept.strict.isfinite().tolist()
    [[[True, False, True, False]]]
    """

    p: float

    def __post_init__(self) -> None:
        check_positive("p", self.p)
        if self.p > 1:
            raise ValueError(f"p: expected a probability of at most 1, found {self.p}")

    def _removed(self, values: Tensor, slack: float) -> Tensor:
        ordered, place = values.sort(descending=False)
        removed = ordered.softmax(-1).cumsum(-1) <= 1 - self.p - slack
        removed[..., -1] = False
        return torch.empty_like(removed).scatter_(-1, place, removed)


def after_rules(rules: Iterable[SamplingRule], logits: Tensor, codes: Tensor, last: Tensor) -> Scores:
    """The scores after some rules, one after the other.

    :param logits: ``[N, T, S]``.
    :param codes: long ``[N, L]``, what the network has seen.
    :param last: long ``[N, T]``, which of the codes is the last before each prediction.

    >>> import torch
    >>> logits = torch.tensor([[[3.0, 1.0, 2.0, 2.5]]])
    >>> after_rules([Temperature(0.5), TopK(2)], logits, torch.tensor([[0]]), torch.tensor([[0]])).strict
    tensor([[[6., -inf, -inf, 5.]]])
    """
    scores = Scores.of(logits, codes, last)
    for rule in rules:
        scores = rule.apply(scores)
    return scores


def checked_rules(rules: Sequence[SamplingRule] | SamplingRule) -> tuple[SamplingRule, ...]:
    """Rules in a tuple.

    :raises ValueError: if they are something else.

    >>> checked_rules([TopK(50)])
    (TopK(k=50),)
    """
    if isinstance(rules, SamplingRule):
        rules = (rules,)
    words = "sampling rules in a list, such as [Temperature(0.7), TopK(50)]"
    if not isinstance(rules, Sequence):
        raise ValueError(f"rules: expected {words}, found {found(rules)}")
    for rule in rules:
        check_instance("rules", rule, SamplingRule, words)
    return tuple(rules)


def rounding(logits: Tensor) -> Tensor:
    """By how much logits may differ from one batch to another, by rounding alone; a scalar.

    >>> import torch
    >>> float(rounding(torch.tensor([-4.0, 2.0]))) == 4 * 2**-18  # 32 times the precision 2**-23
    True
    """
    largest = logits.masked_fill(logits == -torch.inf, 0.0).abs().amax()
    # Logits in double precision may be made of numbers in single precision.
    unit = max(torch.finfo(logits.dtype).eps, torch.finfo(torch.float).eps)
    return largest.double() * (_ROUNDINGS * unit)
