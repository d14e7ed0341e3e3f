# SPDX-License-Identifier: Apache-2.0
"""What a model is: the one base class, with the methods that the engine calls."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from pyro_ksd.edits.neighborhoods import Neighborhood
from pyro_ksd.edits.splices import Edits
from pyro_ksd.kernels.length import LengthDistribution
from pyro_ksd.models.evaluation import evaluated_ratio
from pyro_ksd.sequences.argument_checks import check_sequences, unknown_symbols
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.sequences.covariates import Covariates, check_covariates

_COMPARED = 20  # sequences whose probabilities must not change with the covariates


class SequenceModel(ABC):
    """A model of sequences, known up to a constant factor.

    A subclass writes ``alphabet_size`` and :meth:`log_joint`. Override the other methods where the model can do more:
    ratios without evaluating whole sequences (:meth:`log_ratio`), samples (:meth:`draw`), or data and edits of a
    special form (:meth:`check_data`, :attr:`default_neighborhood`).

    >>> class Shrinking(SequenceModel):
    ...     "Every further symbol makes a sequence of two symbols e² times less probable."
    ...     alphabet_size = 2
    ...     def log_joint(self, sequences):
    ...         return -2.0 * sequences.lengths
    >>> from pyro_ksd.edits import zs
    >>> data = Sequences.of(["ab"])
    >>> Shrinking().log_ratio(data, zs(locations=1).edits(data)).tolist()  # aa, aba, abb, a
    [0.0, -2.0, -2.0, 2.0]
    """

    @property
    @abstractmethod
    def alphabet_size(self) -> int:
        """The number of symbols ``S``."""

    @property
    def name(self) -> str:
        """What the model is called in messages."""
        return type(self).__name__

    @abstractmethod
    def log_joint(self, sequences: Sequences) -> Tensor:
        """``log p(x)`` up to a constant, ``[N]``; ``-inf`` where the model calls a sequence impossible."""

    def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
        """``log p(y) - log p(x)`` for every edit ``y`` of its owner ``x``, ``[E]``; every ``p(x) > 0``.

        By default the log-joints of all edited sequences are evaluated, each once.
        """
        return evaluated_ratio(self, sequences, edits)

    @property
    def has_quick_ratios(self) -> bool:
        """Whether :meth:`log_ratio` takes less than the evaluation of all edited sequences."""
        return type(self).log_ratio is not SequenceModel.log_ratio

    @property
    def can_draw(self) -> bool:
        """Whether :meth:`draw` works, as the parametric bootstrap needs."""
        return type(self).draw is not SequenceModel.draw

    @property
    def is_normalized(self) -> bool:
        """Whether the log-joint is known to be the log-probability, of the symbols given the length where the model
        does not define lengths, and not only up to a constant."""
        return False

    @property
    def is_costly(self) -> bool:
        """Whether the model scores one sequence at a time, so that null draws of whole data sets would take long."""
        return False

    @property
    def is_threadsafe(self) -> bool:
        """Whether several threads may ask for log-joints and log-ratios at once."""
        return False

    def draw(self, num_sequences: int, generator: torch.Generator | None = None) -> Sequences:
        """Independent sequences from the model.

        :param generator: of all random numbers; torch's global one if left out.
        """
        raise ValueError(
            f"draw: expected a model that can be sampled, found {self.name}, which cannot; let a program "
            "draw sequences where it is given num_sequences=, or pass a sampler: with_sampler(model, sampler)"
        )

    @property
    def takes_covariates(self) -> bool:
        """Whether probabilities depend on the covariates of a sequence."""
        return False

    def draw_given(self, covariates: Covariates, generator: torch.Generator | None = None) -> Sequences:
        """Independent sequences from the model, one for each row of covariates, which they have.

        By default :meth:`draw`, for a model that ignores covariates.

        :param generator: of all random numbers; torch's global one if left out.
        """
        check_covariates(covariates)
        drawn = self.draw(len(covariates), generator).with_covariates(covariates)
        rows = torch.linspace(0, len(drawn) - 1, _COMPARED).long()
        few = drawn[rows]
        if not _same(self.log_joint(few), self.log_joint(few.with_covariates(covariates[rows.roll(1)]))):
            raise ValueError(
                f"draw: expected a model that ignores covariates, found {self.name}, whose probabilities change with "
                "them; let it draw for given covariates: write draw_given(covariates, generator), or pass a sampler "
                "with the parameter covariates"
            )
        return drawn

    @property
    def default_neighborhood(self) -> Neighborhood | None:
        """The edits that suit the model, where it needs others than all substitutions, insertions and deletions."""
        return None

    @property
    def defines_lengths(self) -> bool | None:
        """Whether the model gives probabilities to lengths; ``None`` where its log-joints must show it."""
        return None

    def length_distribution(self) -> LengthDistribution | None:
        """The exact distribution of the length; ``None`` where the model cannot tell it at little cost."""
        return None

    @property
    def ends(self) -> tuple[int, ...]:
        """The codes of the symbols with one of which every sequence ends, and which stand nowhere else, if any."""
        return ()

    def check_data(self, sequences: Sequences) -> None:  # noqa: B027  # all data are welcome by default
        """Refuses data that are not meant for the model.

        :raises ValueError: naming the sequences.
        """

    def impossible_sites(self, sequences: Sequences) -> list[str]:
        """For each of some impossible sequences, the site that makes it so; ``""`` where the model has no sites."""
        return [""] * len(sequences)

    @property
    def ratio_error(self) -> float | None:
        """By how much log-ratios may be wrong because log-joints are estimates; ``None`` where they are exact."""
        return None

    def for_rows(self, begin: int) -> SequenceModel:
        """The model of the sequences from the row ``begin`` of the data on; the same for all rows by default."""
        return self


def _same(values: Tensor, others: Tensor) -> bool:
    return torch.allclose(values.double(), others.double(), equal_nan=True)


def draw_data_sets(
    model: SequenceModel,
    num_sets: int,
    size: int,
    covariates: Covariates | None,
    generator: torch.Generator | None,
) -> Sequences:
    """Data sets of ``size`` sequences each from the model, one after the other.

    :param covariates: those of the data, ``size`` rows, which every data set has; ``None`` if there are none.
    """
    if covariates is None:
        return model.draw(num_sets * size, generator)
    return model.draw_given(covariates.repeated(num_sets), generator)


def check_alphabet_size(model: SequenceModel, sequences: Sequences) -> None:
    """Checks that the sequences are over the model's symbols."""
    check_sequences("sequences", sequences)
    known = model.alphabet_size
    if sequences.alphabet_size != known:
        more = f"; {unknown_symbols(sequences, known)}" if sequences.alphabet_size > known else ""
        raise ValueError(
            f"expected sequences over the model's {known} symbols, found an alphabet of {sequences.alphabet_size}; "
            f"state it in Sequences.of(data, alphabet=...){more}"
        )
