# SPDX-License-Identifier: Apache-2.0
"""Features of covariates: the groups of equal ones, and the content of prompts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pyro_ksd.common.option_checks import check_number
from pyro_ksd.common.row_groups import distinct_rows
from pyro_ksd.common.tensor_checks import shown
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.sequences.covariates import PROMPT_PAD, Covariates

_UNNAMED = "covariates"
_SHOWN = 8  # codes of a prompt in a label
_FACTOR, _PRIME = 1_000_003, 2_147_483_647


class CovariateFeatures(ABC):
    """A function of covariates with words for what it returns."""

    name: str
    """What sequences are compared by, in the names of views."""

    @abstractmethod
    def __call__(self, covariates: Covariates) -> Tensor:
        """The features of the covariates of ``N`` sequences, double ``[N, G]``, dense or sparse."""

    @abstractmethod
    def label(self, column: int) -> str:
        """What a feature is called."""


@dataclass(frozen=True, eq=False)
class OwnFeatures(CovariateFeatures):
    """A function of the user's own.

    >>> def age_groups(covariates):
    ...     return torch.stack([covariates.values < 18, covariates.values >= 18], 1).double()
    >>> OwnFeatures(age_groups).name, OwnFeatures(age_groups).label(1), OwnFeatures(len).name
    ('age_groups', 'age_groups 1', 'len')
    """

    function: Callable[[Covariates], Tensor]

    @property
    def name(self) -> str:  # type: ignore[override]  # read only
        name = getattr(self.function, "__name__", type(self.function).__name__)
        return _UNNAMED if name == "<lambda>" else str(name)

    def __call__(self, covariates: Covariates) -> Tensor:
        return self.function(covariates)

    def label(self, column: int) -> str:
        return f"{self.name} {column}"


@dataclass(frozen=True, eq=False)
class CovariateGroups(CovariateFeatures):
    """The indicators of the groups of sequences with equal covariates, for a
    :class:`~pyro_ksd.kernels.ConditionalKernel`.

    :param name: what the covariate is called.
    :param known: long ``[G, C]``, the covariates of each group.
    :param labels: what the groups are called.

    >>> data = Sequences.of(["ab", "b", "a"]).with_covariates({"dose": [5, 2, 5]})
    >>> groups = CovariateGroups.of(data, "dose")
    >>> groups.label(1), groups(data.covariates).to_dense().tolist()
    ('dose 5', [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    """

    name: str
    known: Tensor
    labels: tuple[str, ...]

    @staticmethod
    def of(sequences: Sequences, name: str, symbols: Sequence[str] | None = None) -> CovariateGroups:
        """The groups of some sequences.

        :param name: that of a covariate of whole numbers, such as groups or prompts; covariates without names get it.
        :param symbols: how the codes of prompts are spelled; as numbers if left out.
        """
        values = _column(sequences.covariates, name)
        first, _ = distinct_rows(values)
        rows = sorted(values[first].tolist())
        labels = tuple(_label([code for code in row if code != PROMPT_PAD], symbols) for row in rows)
        return CovariateGroups(name, torch.tensor(rows).reshape(len(rows), values.shape[1]), labels)

    def __len__(self) -> int:
        return len(self.known)

    def __call__(self, covariates: Covariates) -> Tensor:
        """The indicators of the groups, sparse ``[N, G]``."""
        own = _column(covariates, self.name)
        width = max(own.shape[1], self.known.shape[1])
        parts = [
            torch.nn.functional.pad(part, (0, width - part.shape[1]), value=PROMPT_PAD) for part in (self.known, own)
        ]
        _, group = distinct_rows(torch.cat(parts))
        place = torch.full((int(group.max()) + 1,), -1)
        place[group[: len(self)]] = torch.arange(len(self))
        column = place[group[len(self) :]]
        if (column < 0).any():
            row = int((column < 0).nonzero()[0])
            raise ValueError(
                f"{self.name}: expected one of the {len(self)} values of the data, found {own[row].tolist()}"
            )
        index = torch.stack([torch.arange(len(own)), column])
        ones = torch.ones(len(own), dtype=torch.double)
        return torch.sparse_coo_tensor(index, ones, (len(own), len(self)), is_coalesced=True, check_invariants=False)

    def label(self, column: int) -> str:
        """What a group is called."""
        return f"{self.name} {self.labels[column]}"


@dataclass(frozen=True)
class PromptContent(CovariateFeatures):
    r"""Which codes occur in prompts, in a fixed number of features, for prompts that hardly ever recur.

    Every code :math:`s` has a place :math:`h(s)` and a sign :math:`\sigma(s)`, which are fixed but look random:
    :math:`g_j(c) \propto \sum_{s \in c,\, h(s) = j} \sigma(s)`, scaled to length 1. So the product of two prompts is
    about the cosine of their codes (feature hashing, Weinberger et al., 2009).

    :param num_features: the number of places.
    :param name: the name of the prompts among several covariates.

    >>> prompts = Sequences.of(["a", "b", "a"]).with_covariates([[5, 3], [7], [3, 5]]).covariates
    >>> features = PromptContent()(prompts)
    >>> (features @ features.t()).round(decimals=3).abs().tolist()
    [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    """

    num_features: int = 32
    name: str = "prompt"

    def __post_init__(self) -> None:
        object.__setattr__(self, "num_features", check_number("num_features", self.num_features, least=1))

    def __call__(self, covariates: Covariates) -> Tensor:
        """The features of the prompts, double ``[N, num_features]``."""
        codes = _column(covariates, self.name)
        mixed = (codes + 1) * _FACTOR % _PRIME * _FACTOR % _PRIME
        sign = 1.0 - 2.0 * (mixed // self.num_features % 2)
        sign = sign.double().masked_fill(codes == PROMPT_PAD, 0.0)
        sums = torch.zeros(len(codes), self.num_features, dtype=torch.double)
        sums.scatter_add_(1, mixed % self.num_features, sign)
        return torch.nn.functional.normalize(sums, dim=1)

    def label(self, column: int) -> str:
        """What a feature is called."""
        return f"content {column} of {self.name}s"


def _column(covariates: Covariates | None, name: str) -> Tensor:
    """A covariate of whole numbers, long ``[N, C]``."""
    if covariates is None:
        raise ValueError(f"by: expected data with the covariate {name!r}, found none; pass data.with_covariates(...)")
    values = covariates.values
    if not isinstance(values, Tensor):
        if name not in values:
            raise ValueError(f"by: expected one of the covariates {sorted(values)}, found {name!r}")
        values = values[name]
    if values.is_floating_point():
        raise ValueError(
            f"by: expected whole numbers, such as groups or prompts, for {name!r}, found {shown(values)}; pass a "
            "function of the covariates that returns features [N, G]"
        )
    return values.long().reshape(len(values), -1)


def _label(codes: Sequence[int], symbols: Sequence[str] | None) -> str:
    """The codes of a group as text."""
    words = [str(code) if symbols is None or code >= len(symbols) else symbols[code] for code in codes]
    shown_words = words if len(words) <= _SHOWN else [*words[: _SHOWN // 2], "…", *words[-_SHOWN // 2 :]]
    return " ".join(shown_words)
