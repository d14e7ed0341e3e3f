# SPDX-License-Identifier: Apache-2.0
"""What the baselines share: a model that can be sampled, and null draws from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from pyro_ksd.checks.data_argument import as_sequences
from pyro_ksd.common.progress import progress_bar
from pyro_ksd.fit_tests.null_draws import sets_at_once
from pyro_ksd.fit_tests.statistics import check_sample_size
from pyro_ksd.models.base import SequenceModel, check_alphabet_size, draw_data_sets
from pyro_ksd.models.conversion import as_model
from pyro_ksd.models.duck_typing import adapted
from pyro_ksd.models.wrappers.sampler import Sampler
from pyro_ksd.sequences.container import Sequences


def sampleable(
    model: Any, data: Any, parameters: Mapping[str, Tensor] | None, sampler: Sampler | None
) -> tuple[SequenceModel, Sequences]:
    """The model and the data, made ready.

    :raises ValueError: if the model cannot be sampled, or is not meant for these data.
    """
    model = adapted(model)
    sequences = as_sequences(data, model)
    check_sample_size(len(sequences))
    ready = as_model(model, sequences, parameters=parameters, sampler=sampler)
    if not ready.can_draw:
        raise ValueError(
            f"model: expected one that can be sampled, found {ready.name}, which cannot; pass sampler=, a "
            "function of the number of sequences and a generator, or give a program the argument num_sequences"
        )
    check_alphabet_size(ready, sequences)
    ready.check_data(sequences)
    return ready, sequences


def drawn_for(sequences: Sequences, model: SequenceModel, num_sequences: int, generator: torch.Generator) -> Sequences:
    """Sequences from the model, over the alphabet of the data and with their covariates."""
    times, rest = divmod(num_sequences, len(sequences))
    if sequences.covariates is None:
        return model.draw(num_sequences, generator).over(sequences.alphabet)
    if rest:
        raise ValueError(
            f"num_samples: expected a multiple of the {len(sequences)} sequences, so that samples have the same "
            f"covariates, found {num_sequences}"
        )
    return draw_data_sets(model, times, len(sequences), sequences.covariates, generator).over(sequences.alphabet)


def null_draws(statistics: Callable[[int], Tensor], num_draws: int, size: int, progress: bool) -> Tensor:
    """Statistics of data sets of a true model, ``[B, V]``.

    :param statistics: takes a number of data sets, draws them and gives their statistics, ``[G, V]``.
    :param size: how many sequences a data set has.
    """
    draws = []
    together = sets_at_once(size)
    with progress_bar(total=num_draws, desc="parametric bootstrap", unit="draw", show=progress) as bar:
        for begin in range(0, num_draws, together):
            draws.append(statistics(min(together, num_draws - begin)))
            bar.update(len(draws[-1]))
    return torch.cat(draws)
