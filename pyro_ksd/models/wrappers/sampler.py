# SPDX-License-Identifier: Apache-2.0
"""Models whose samples come from a sampler that the user passes."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import torch

from pyro_ksd.common.option_checks import check_function, check_number
from pyro_ksd.common.random_numbers import check_generator, drawn_seed, following_seed
from pyro_ksd.kernels.length import LengthDistribution
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.session_state import session_kept
from pyro_ksd.models.wrappers.base import ModelWrapper
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.sequences.covariates import Covariates, Values, check_covariates

Sampler = Callable[..., Sequences]
"""Takes how many sequences to draw and the generator of the random numbers; with a third parameter ``covariates``, also
the covariates to draw for, one row for each sequence."""


def check_sampler(sampler: object) -> None:
    """Checks that an argument can be a sampler.

    >>> check_sampler(lambda size: None)
    Traceback (most recent call last):
    ValueError: sampler: expected a function of (num_sequences, generator), found one of (size)
    """
    covariates = ("covariates",) if _takes_covariates(sampler) else ()
    check_function("sampler", sampler, "num_sequences", "generator", *covariates)


def _takes_covariates(sampler: object) -> bool:
    try:
        return callable(sampler) and "covariates" in inspect.signature(sampler).parameters
    except ValueError:  # some functions written in C do not state their arguments
        return False


class SampledModel(ModelWrapper):
    """A model with a sampler beside it, made by :func:`~pyro_ksd.models.with_sampler`."""

    def __init__(self, model: SequenceModel, sampler: Sampler) -> None:
        check_sampler(sampler)
        super().__init__(model)
        self._sampler = sampler

    @property
    def can_draw(self) -> bool:
        return True

    def length_distribution(self) -> LengthDistribution | None:
        return self.model.length_distribution()

    def draw(self, num_sequences: int, generator: torch.Generator | None = None) -> Sequences:
        """Sequences from the sampler; without a generator it gets one that torch's global stream seeds."""
        return self._sampled(check_number("num_sequences", num_sequences, least=1), generator)

    def draw_given(self, covariates: Covariates, generator: torch.Generator | None = None) -> Sequences:
        """Sequences from the sampler, one for each row of covariates."""
        check_covariates(covariates)
        if not _takes_covariates(self._sampler):
            return super(ModelWrapper, self).draw_given(covariates, generator)
        return self._sampled(len(covariates), generator, covariates.values).with_covariates(covariates)

    def _sampled(self, num_sequences: int, generator: torch.Generator | None, *covariates: Values) -> Sequences:
        if generator is None:
            generator = torch.Generator().manual_seed(drawn_seed())
        check_generator(generator)
        with session_kept(following_seed(generator)):
            drawn = self._sampler(num_sequences, generator, *covariates)
        if not isinstance(drawn, Sequences):
            raise ValueError(
                f"sampler: expected Sequences, found {type(drawn).__name__}; convert with Sequences.of(..., "
                f"{self.alphabet_size})"
            )
        if len(drawn) != num_sequences or drawn.alphabet_size != self.alphabet_size:
            raise ValueError(
                f"sampler: expected {num_sequences} sequences over the model's {self.alphabet_size} symbols, found "
                f"{len(drawn)} over {drawn.alphabet_size}; draw as many as are asked for, and state the alphabet"
            )
        return drawn


def with_sampler(model: SequenceModel, sampler: Sampler) -> SampledModel:
    """The model with a ``draw`` that asks the sampler, as the parametric bootstrap needs.

    The level of the test is only as good as the sampler: it must draw independent sequences from the model.

    :param model: any model; its own ``draw``, if it has one, is not used.
    :param sampler: takes the number of sequences and the generator of all its random numbers; for data with covariates,
        these too: ``sampler(num_sequences, generator, covariates)``.

    >>> from pyro_ksd.models import LinearChainMRF
    >>> coin = LinearChainMRF(torch.zeros(2, 2), length=torch.tensor([-torch.inf, 0.0]))
    >>> def toss(num_sequences, generator):
    ...     return Sequences.of(torch.randint(2, (num_sequences, 1), generator=generator), alphabet=2)
    >>> with_sampler(coin, toss).draw(3, torch.Generator().manual_seed(0)).to_lists()
    [[0], [1], [1]]
    """
    return SampledModel(model, sampler)
