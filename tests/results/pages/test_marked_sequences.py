# SPDX-License-Identifier: Apache-2.0
"""Sequences with the places marked where the misfit lies."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from synthetic import PHONEMES, made_up_check, misfit

from pyro_ksd.results.pages.marked_sequences import LONGEST, has_letters, shown_symbols, worst_sequences


@pytest.mark.parametrize("symbols", [list("abcd"), PHONEMES])
def test_marks_are_proportional_to_the_shares(symbols: list[str]) -> None:
    check = misfit(made_up_check(symbols, longest=20))
    one = check["ksd"].to_dataset().sel(view="content-2")
    strongest = np.nanmax(one["attribution"].values)
    for place, row in enumerate(worst_sequences(check, "content-2", 30)):
        assert row.index == one["shown_sequence"].values[place]
        assert row.contribution == one["contribution"].sel(sequence=row.index).item()
        assert row.share == row.contribution / one["statistic"].item()
        codes = check["ksd_data"]["token"].sel(sequence=row.index).values[: row.length]
        assert row.symbols == [symbols[code] for code in codes]
        parts = one["attribution"].isel(shown=place).values[: row.length + 1] / strongest
        assert row.marks == [0 if part < 0.08 else int(np.ceil(4 * part)) for part in parts.tolist()]
        assert row.end_mark == row.marks[-1]
        assert [symbol for symbol, _ in row.pairs] == row.symbols
    assert max(max(row.marks) for row in worst_sequences(check, "content-2", 30)) == 4
    assert has_letters(check) == (symbols == list("abcd"))


def test_nothing_is_marked_where_nothing_was_found() -> None:
    for row in worst_sequences(misfit(made_up_check()), "start", 30):
        assert not any(row.marks)
        assert np.isnan(row.share)


def test_equal_sequences_are_shown_once() -> None:
    check = misfit(made_up_check(["a", "b"], longest=3, num_sequences=50))
    rows = worst_sequences(check, "content-2", 50)
    texts = ["".join(row.symbols) for row in rows]
    assert len(set(texts)) == len(texts) < 50
    assert sum(row.count for row in rows) == 50
    assert len(worst_sequences(check, "content-2", 5)) <= 5


def test_long_sequences_are_cut() -> None:
    check = misfit(made_up_check(longest=LONGEST + 50, num_sequences=5))
    rows = worst_sequences(check, "content-2", 5)
    [longest] = [row for row in rows if row.length == LONGEST + 50]
    assert (len(longest.symbols), longest.is_cut, longest.end_mark) == (LONGEST, True, 0)
    assert all(row.is_cut == (row.length > LONGEST) for row in rows)


def test_symbols_are_readable() -> None:
    check = made_up_check([" ", "\n"])
    group: xr.Dataset = check["ksd_data"].to_dataset()
    for symbols, length in zip(shown_symbols(check, group), group["length"].values, strict=True):
        assert len(symbols) == length
        assert set(symbols) <= {"␣", "\\n"}
