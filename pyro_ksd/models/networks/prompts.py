# SPDX-License-Identifier: Apache-2.0
"""What a network sees before the first symbol of a sequence: one prompt for all sequences, or one for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pyro_ksd.common.option_checks import found
from pyro_ksd.common.tensor_checks import shown
from pyro_ksd.sequences.covariates import PROMPT_PAD, Covariates

PROMPT = "prompt"
"""The name of the prompts among several covariates."""


@dataclass(frozen=True, eq=False)
class Prompts:
    """The prompts of ``N`` sequences.

    :param codes: long ``[N, P]``, with any filling after the ends.
    :param lengths: long ``[N]``, at least 1.
    """

    codes: Tensor
    lengths: Tensor

    @staticmethod
    def same(prompt: Tensor, num_sequences: int) -> Prompts:
        """One prompt, long ``[P]``, for all sequences."""
        return Prompts(prompt.expand(num_sequences, -1), torch.full((num_sequences,), len(prompt)))

    @staticmethod
    def of(covariates: Covariates | None) -> Prompts:
        """The prompts among covariates: the covariates themselves, or those called ``"prompt"``, filled with -1.

        :raises ValueError: if there are none, or something else.

        >>> Prompts.of(Covariates.of([[5, 3], [7]], 2)).lengths
        tensor([2, 1])
        """
        advice = "pass sequences.with_covariates(prompts), a list of codes for each sequence"
        if covariates is None:
            raise ValueError(
                f"prompt: expected a prompt for each sequence, as the model has none for all, found none; {advice}"
            )
        values = covariates.values
        codes = values if isinstance(values, Tensor) else values.get(PROMPT)
        if codes is None:
            raise ValueError(f"prompt: expected a covariate {PROMPT!r}, found {covariates}; {advice}")
        if codes.ndim != 2 or codes.is_floating_point() or codes.dtype == torch.bool:
            raise ValueError(f"prompt: expected codes [N, P], filled with -1, found {shown(codes)}; {advice}")
        codes = codes.long()
        inside = codes != PROMPT_PAD
        lengths = inside.sum(1)
        gaps = inside.long().cumprod(1).sum(1) != lengths
        if gaps.any() or not lengths.all():
            row = int((gaps | (lengths == 0)).nonzero()[0])
            raise ValueError(
                f"prompt: expected at least one code, and -1 only after the last, found {codes[row].tolist()} for "
                f"sequence {row}; give a start symbol where there is nothing else to say"
            )
        return Prompts(codes.masked_fill(~inside, 0), lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def width(self) -> int:
        """The length of the longest prompt."""
        return self.codes.shape[1]

    def take(self, rows: Tensor) -> Prompts:
        """The prompts of some of the sequences."""
        return Prompts(self.codes[rows], self.lengths[rows])

    def followed_by(self, tokens: Tensor) -> Tensor:
        """Each prompt with the symbols of its sequence right after it, long ``[N, P + T]``, filled with 0.

        :param tokens: long ``[N, T]``.
        """
        whole = torch.nn.functional.pad(self.codes, (0, tokens.shape[1]))
        places = self.lengths[:, None] + torch.arange(tokens.shape[1])
        return whole.scatter(1, places, tokens)

    def behind(self, values: Tensor) -> Tensor:
        """Of the values at each code, those at the last code of the prompt and after it.

        :param values: ``[N, P + T, S]``, for what :meth:`followed_by` gives.
        :returns: ``[N, T + 1, S]``.
        """
        count = values.shape[1] - self.width + 1
        first = self.lengths - 1
        if len(self) and (first == first[0]).all():
            return values[:, int(first[0]) : int(first[0]) + count]
        places = self.last_places(count)
        return values.gather(1, places[..., None].expand(-1, -1, values.shape[2]))

    def last_places(self, count: int) -> Tensor:
        """Where the last code before each of ``count`` symbols is, long ``[N, count]``, after :meth:`followed_by`.

        >>> Prompts.same(torch.tensor([7, 8]), 2).last_places(3).tolist()
        [[1, 2, 3], [1, 2, 3]]
        """
        return self.lengths[:, None] - 1 + torch.arange(count)


def has_prompts(covariates: Covariates | None) -> bool:
    """Whether there are prompts among covariates that have names."""
    return covariates is not None and not isinstance(covariates.table, Tensor) and PROMPT in covariates.table


def checked_prompt(prompt: Sequence[int] | Tensor) -> Tensor:
    """The prompt of all sequences, long ``[P]``.

    :raises ValueError: if it is no list of codes.
    """
    if isinstance(prompt, Sequence) and any(isinstance(symbol, str) for symbol in prompt):
        raise ValueError(
            f"prompt: expected codes for the network, found the symbols {prompt!r}; give their codes, data.encode(...)"
        )
    try:
        codes = torch.as_tensor(prompt).cpu()
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"prompt: expected a list of codes for the network, found {found(prompt)}") from None
    if codes.ndim != 1 or not len(codes) or codes.is_floating_point() or codes.dtype == torch.bool:
        raise ValueError(
            f"prompt: expected codes for the network, at least one, in one dimension, found {codes.dtype} "
            f"{list(codes.shape)}; give a start symbol where there is nothing else to say, or leave it out where each "
            "sequence has a prompt of its own: sequences.with_covariates(prompts)"
        )
    return codes.long()
