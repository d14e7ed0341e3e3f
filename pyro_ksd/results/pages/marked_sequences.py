# SPDX-License-Identifier: Apache-2.0
"""Sequences with the places marked where the misfit lies."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr

from pyro_ksd.results.containers import alphabet_of, data_of, dataset
from pyro_ksd.results.detail_tables import is_found
from pyro_ksd.results.labels import are_letters, readable

LONGEST = 300
"""How many symbols of a sequence are shown."""

_LEVELS = 4  # of marks
_FAINTEST = 0.08  # the share of the strongest mark below which there is none


@dataclass(frozen=True)
class MarkedSequence:
    """A sequence, and how strongly each of its places is marked.

    :ivar index: of the first such sequence in the data.
    :ivar count: how many of the sequences shown are equal.
    :ivar symbols: as people can read them.
    :ivar marks: from 0, not at all, to 4, for each symbol and the end.
    :ivar length: the number of its symbols, of which some may not be shown.
    :ivar contribution: of one such sequence to the statistic.
    :ivar share: what share of the statistic this is; NaN if the view does not reject the model.
    """

    index: int
    count: int
    symbols: list[str]
    marks: list[int]
    length: int
    contribution: float
    share: float

    @property
    def pairs(self) -> list[tuple[str, int]]:
        """Each symbol with its mark."""
        return list(zip(self.symbols, self.marks, strict=False))

    @property
    def is_cut(self) -> bool:
        """Whether some symbols are not shown."""
        return self.length > len(self.symbols)

    @property
    def end_mark(self) -> int:
        """The mark of the end, if it is shown."""
        return 0 if self.is_cut else self.marks[-1]


def worst_sequences(check: Any, view: str, most: int) -> list[MarkedSequence]:
    """The sequences with the largest shares in the statistic of a view; equal ones are shown once.

    Marked are places that speak against the model, if the view rejects it.
    """
    one = dataset(check, "ksd", "contribution", "shown_sequence", "attribution").sel(view=view).isel(shown=slice(most))
    rows = one["shown_sequence"].values
    attribution = one["attribution"].transpose("shown", "position").values
    contribution = one["contribution"].sel(sequence=rows).values
    strongest = float(np.nanmax(attribution, initial=0.0))
    strength = np.nan_to_num(attribution) / strongest if strongest > 0 and is_found(check, one) else 0 * attribution
    marks = np.where(strength >= _FAINTEST, np.ceil(_LEVELS * strength), 0).astype(int).clip(0, _LEVELS)
    share = contribution / float(one["statistic"]) if is_found(check, one) else np.full(len(rows), np.nan)
    found: dict[tuple[str, ...], MarkedSequence] = {}
    symbols = shown_symbols(check, data_of(check).sel(sequence=rows))
    lengths = data_of(check)["length"].sel(sequence=rows).values.tolist()
    for place, own in enumerate(symbols):
        key = (*own, str(lengths[place]))
        if key in found and lengths[place] <= LONGEST:
            found[key] = replace(found[key], count=found[key].count + 1)
            continue
        found[key if key not in found else (*key, str(place))] = MarkedSequence(
            index=int(rows[place]),
            count=1,
            symbols=own,
            marks=marks[place, : len(own) + 1].tolist(),
            length=lengths[place],
            contribution=float(contribution[place]),
            share=float(share[place]),
        )
    return list(found.values())


def shown_symbols(check: Any, group: xr.Dataset) -> list[list[str]]:
    """The symbols of sequences as people can read them, as far as they are shown.

    :param group: with ``token`` and ``length``.
    """
    alphabet = [readable(symbol) for symbol in alphabet_of(check)]
    shown = np.minimum(group["length"].values, LONGEST).tolist()
    return [
        [alphabet[code] for code in codes[:count]] for codes, count in zip(group["token"].values, shown, strict=True)
    ]


def has_letters(check: Any) -> bool:
    """Whether each symbol is one letter, so that symbols need no space between them."""
    return are_letters(alphabet_of(check))
