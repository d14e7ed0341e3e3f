# SPDX-License-Identifier: Apache-2.0
"""Groups of sequences: the data themselves, and data beside replicated data in the layout that ArviZ expects."""

from __future__ import annotations

import json

import numpy as np
import numpy.typing as npt
import torch
import xarray as xr
from torch import Tensor

from pyro_ksd.fit_tests.replicates import Replicates
from pyro_ksd.results.arrays import as_numpy, as_strings
from pyro_ksd.sequences.container import Sequences

_DRAWN = ("chain", "draw", "sequence")


def sequences_group(sequences: Sequences) -> xr.Dataset:
    """The sequences, so that a saved file is self-contained."""
    # The alphabet belongs to the variable, so that it stays with it when the group is merged with another one.
    return xr.Dataset(
        {
            "token": (("sequence", "position"), as_numpy(sequences.padded(-1)), _alphabet(sequences)),
            "length": ("sequence", as_numpy(sequences.lengths)),
        },
        coords={"sequence": np.arange(len(sequences)), "position": np.arange(sequences.width)},
    )


def observed_group(sequences: Sequences) -> xr.Dataset:
    """The lengths of the data.

    >>> observed_group(Sequences.of(["ab", "bbb"]))["length"].values.tolist()
    [2, 3]
    """
    return sequences_group(sequences)[["length"]]


def observed_beside(replicates: Replicates, sequences: Sequences, kept: npt.NDArray[np.int64]) -> xr.Dataset:
    """The numbers of the data that stand beside those of replicated data, under the same names.

    :param sequences: the data.
    :param kept: the rows of the data that the replicated data stand beside.
    """
    own = sequences[torch.tensor(kept)]
    numbers = Replicates.of(own, 1, replicates.symbols, tokens=replicates.tokens is not None)
    group = _numbers(numbers, sequences).isel(chain=0, draw=0, drop=True).assign_coords(sequence=kept)
    return group if replicates.counts is not None else group.drop_vars(["symbol_count", "symbol"])


def predictive_group(
    replicates: Replicates,
    sequences: Sequences,
    kept: npt.NDArray[np.int64],
    *,
    num_chains: int,
    parameters: str,
) -> xr.Dataset:
    """The numbers of replicated data.

    :param sequences: the data.
    :param kept: the rows of the data that the replicated data stand beside.
    :param parameters: whether they were ``"given"`` or drawn from a ``"posterior"``.
    """
    group = _numbers(replicates, sequences, num_chains).assign_coords(sequence=kept)
    return group.assign_attrs(parameters=parameters, sample_dims=["chain", "draw"])


def log_likelihood_group(values: Tensor, kept: npt.NDArray[np.int64], num_chains: int) -> xr.Dataset:
    """The log-probability of each sequence under each draw.

    :param values: ``[D, N]``.
    :param kept: the rows of the data.
    """
    shaped = as_numpy(values).reshape(num_chains, -1, len(kept))
    return xr.Dataset(
        {"token": (_DRAWN, shaped)},
        coords={"chain": np.arange(num_chains), "draw": np.arange(shaped.shape[1]), "sequence": kept},
        attrs={"sample_dims": ["chain", "draw"]},
    )


def _numbers(numbers: Replicates, sequences: Sequences, num_chains: int = 1) -> xr.Dataset:
    """Numbers of data sets as a group.

    :param sequences: the data, for the names of the symbols.
    """

    def shaped(values: Tensor) -> npt.NDArray[np.generic]:
        array = as_numpy(values)
        return array.reshape(num_chains, -1, *array.shape[1:])

    length = shaped(numbers.length)
    group = xr.Dataset(
        {"length": (_DRAWN, length), "distinct_symbols": (_DRAWN, shaped(numbers.distinct))},
        coords={name: np.arange(size) for name, size in zip(_DRAWN, length.shape, strict=True)},
    )
    if numbers.counts is not None:
        names = [str(sequences.symbols[code]) for code in numbers.symbols.tolist()]
        group = group.assign_coords(symbol=as_strings(names))
        group["symbol_count"] = ((*_DRAWN, "symbol"), shaped(numbers.counts))
    if numbers.tokens is not None:
        group = group.assign_coords(position=np.arange(numbers.tokens.shape[-1]))
        group["token"] = ((*_DRAWN, "position"), shaped(numbers.tokens), _alphabet(sequences))
    return group


def _alphabet(sequences: Sequences) -> dict[str, str]:
    return {"alphabet": json.dumps([str(symbol) for symbol in sequences.symbols])}
