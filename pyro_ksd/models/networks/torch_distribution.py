# SPDX-License-Identifier: Apache-2.0
"""Distributions of torch and Pyro over sequences."""

from __future__ import annotations

import torch
from pyro.distributions import DiscreteHMM
from torch import Tensor
from torch.distributions import Categorical, Distribution

from pyro_ksd.common.random_numbers import drawn_seed
from pyro_ksd.models.chunked_model import ChunkedModel
from pyro_ksd.models.distributions.sampling import PAD
from pyro_ksd.models.programs.exact_probabilities import innermost
from pyro_ksd.models.programs.symbol_sites import missing_symbols
from pyro_ksd.models.repeated_runs import repeatable
from pyro_ksd.models.rounding import rounding_of_ratios, warn_of_rounding
from pyro_ksd.models.session_state import isolated
from pyro_ksd.sequences.container import Sequences


class TorchDistributionModel(ChunkedModel):
    """A distribution whose events are sequences, long ``[T]`` filled with -1 after the end.

    ``log_prob`` takes values ``[N, T]`` of any width ``T`` and gives ``[N]``; ``sample``, which the parametric
    bootstrap needs, gives such values.
    """

    def __init__(self, distribution: Distribution, alphabet_size: int) -> None:
        super().__init__(alphabet_size)
        if distribution.batch_shape or len(distribution.event_shape) != 1:
            raise ValueError(
                "model: expected one distribution over padded sequences (batch_shape [] and event_shape [T]), found "
                f"{type(distribution).__name__} with batch_shape {list(distribution.batch_shape)} and event_shape "
                f"{list(distribution.event_shape)}"
            )
        self._distribution = distribution
        self._warned = False  # of rounding

    def _evaluate(self, sequences: Sequences) -> Tensor:
        padded = sequences.padded(PAD)
        with isolated(validate=False):
            values = repeatable(lambda: self._distribution.log_prob(padded), "distribution")
        if values.shape != (len(sequences),):
            raise ValueError(
                f"log_prob: expected [{len(sequences)}] values for {len(sequences)} padded sequences "
                f"[{len(sequences)}, {sequences.width}], found {list(values.shape)}"
            )
        source = f"log_prob of {type(self._distribution).__name__}"
        self._warned = self._warned or warn_of_rounding(rounding_of_ratios(values), source)
        return values

    def draw(self, num_sequences: int, generator: torch.Generator | None = None) -> Sequences:
        """Independent sequences from the distribution, with the random state untouched."""
        with isolated(validate=False, seed=drawn_seed(generator)):
            value = self._distribution.sample(torch.Size([num_sequences]))
        return Sequences.of(value.long(), self.alphabet_size, pad=PAD)


class DiscreteHMMModel(ChunkedModel):
    """Pyro's :class:`~pyro.distributions.DiscreteHMM` of single symbols: the symbols of a sequence given its length.

    Its events are sequences without padding, so those of one length are scored together.
    """

    def __init__(self, distribution: DiscreteHMM, alphabet_size: int) -> None:
        super().__init__(alphabet_size)
        symbols = innermost(distribution.observation_dist)
        if distribution.batch_shape or not isinstance(symbols, Categorical):
            raise ValueError(
                "model: expected one DiscreteHMM of single symbols (batch_shape [], observation_dist a Categorical), "
                f"found batch_shape {list(distribution.batch_shape)} and observation_dist {type(symbols).__name__}; "
                "write a program model(sequences, lengths) for others"
            )
        known = int(symbols._num_events)
        if known != alphabet_size:
            raise missing_symbols("observation_dist", known, alphabet_size)
        self._distribution = distribution
        self._warned = False  # of rounding

    def _evaluate(self, sequences: Sequences) -> Tensor:
        values = torch.full((len(sequences),), -torch.inf, dtype=torch.double)
        for length in sequences.lengths.unique().tolist():
            rows = (sequences.lengths == length).nonzero().squeeze(1)
            if length:
                values[rows] = self._log_prob(sequences.tokens[rows, :length]).double()
        return values

    def _log_prob(self, tokens: Tensor) -> Tensor:
        try:
            with isolated(validate=False):
                values = repeatable(lambda: self._distribution.log_prob(tokens), "distribution")
        except (RuntimeError, ValueError) as error:
            raise ValueError(
                f"model: the DiscreteHMM fails on sequences of {tokens.shape[1]} symbols: {error}; if its transitions "
                "are those of a certain number of steps, pass sequences of that length"
            ) from error
        self._warned = self._warned or warn_of_rounding(rounding_of_ratios(values), "log_prob of the DiscreteHMM")
        return values
