# SPDX-License-Identifier: Apache-2.0
"""What the baselines share: a model that can be sampled, and null draws from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from tqdm.auto import tqdm

from pyro_ksd.inputs import as_sequences
from pyro_ksd.models.base import SampleableModel, check_data
from pyro_ksd.models.convert import as_model
from pyro_ksd.models.distribution import check_number
from pyro_ksd.models.sampled import Sampler
from pyro_ksd.sequences import Sequences
from pyro_ksd.statistics import check_sample_size

_REPLICATES = 64  # replicates that are looked at together: enough to keep tensors busy


def check_options(num_bootstrap: int, level: float) -> None:
    """Checks what every test is asked for."""
    check_number("num_bootstrap", num_bootstrap, least=1)
    if not 0 < level < 1:
        raise ValueError(f"level: expected a number between 0 and 1, such as 0.05, found {level}")


def sampleable(
    model: Any, data: Any, parameters: Mapping[str, Tensor] | None, sampler: Sampler | None
) -> tuple[SampleableModel, Sequences]:
    """The model and the data, made ready.

    :raises ValueError: if the model cannot be sampled, or is not meant for these data.
    """
    sequences = as_sequences(data, model)
    check_sample_size(len(sequences))
    ready = as_model(model, sequences, parameters=parameters, sampler=sampler)
    if not isinstance(ready, SampleableModel):
        raise ValueError(
            f"model: expected one that can be sampled, found {type(ready).__name__}, which cannot; pass sampler=, a "
            "function of the number of sequences and a generator, or give a program the argument num_sequences"
        )
    if ready.alphabet_size != sequences.alphabet_size:
        raise ValueError(
            f"expected sequences over the model's {ready.alphabet_size} symbols, found an alphabet of "
            f"{sequences.alphabet_size}; state it in Sequences.of(data, alphabet=...)"
        )
    check_data(ready, sequences)
    return ready, sequences


def draw_like(
    sequences: Sequences, model: SampleableModel, num_sequences: int, generator: torch.Generator
) -> Sequences:
    """Sequences from the model, over the alphabet of the data."""
    drawn = model.draw(num_sequences, generator)
    return sequences.derived(drawn.tokens, drawn.lengths)


def null_draws(statistics: Callable[[int], Tensor], num_draws: int, progress: bool) -> Tensor:
    """Statistics of data sets of a true model, ``[B, V]``.

    :param statistics: takes a number of data sets, draws them and gives their statistics, ``[G, V]``.
    """
    draws = []
    with tqdm(total=num_draws, desc="parametric bootstrap", unit="draw", disable=not progress) as bar:
        for begin in range(0, num_draws, _REPLICATES):
            draws.append(statistics(min(_REPLICATES, num_draws - begin)))
            bar.update(len(draws[-1]))
    return torch.cat(draws)
