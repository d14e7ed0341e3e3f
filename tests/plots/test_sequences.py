# SPDX-License-Identifier: Apache-2.0
"""The pictures of sequences."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from pictures import labels, words
from synthetic import PHONEMES, changed, made_up_check, misfit

from pyro_ksd.plots import plot_sequences


def cells_of(ax: Axes) -> PolyCollection:
    (cells,) = [artist for artist in ax.collections if isinstance(artist, PolyCollection)]
    return cells


@pytest.mark.parametrize("impossible", [0, 2])
def test_sequences_with_the_largest_contributions(impossible: int) -> None:
    check = misfit(made_up_check(list("wxyz"), impossible=impossible))
    one = check["ksd"].to_dataset().sel(view="content-2")
    order = one["sequence"].values[np.argsort(-one["contribution"].values)[:4]]
    ax = plot_sequences(check, num=4)
    shares = 100 * one["contribution"].sel(sequence=order).values / float(one["statistic"])
    assert 1 < shares[0] < 10
    assert labels(ax) == [f"{index}  ({share:.2f} %)" for index, share in zip(order, shares, strict=True)]
    assert ax.get_ylabel() == "index of the sequence, from 0\n(share of the statistic)"

    expected, texts, columns = [], [], []
    for row, index in enumerate(order):
        observed = check["ksd_data"].to_dataset().sel(sequence=index)
        length = int(observed["length"])
        assert int(one["shown_sequence"][row]) == index
        expected += one["attribution"].values[row, : length + 1].tolist()
        texts += [(column, row, "wxyz"[code]) for column, code in enumerate(observed["token"].values[:length])]
        columns += [(column, 1.0) for column in range(length)] + [(length, 0.4)]
    cells = cells_of(ax)
    assert cells.get_array().tolist() == expected
    assert [(*text.get_position(), text.get_text()) for text in ax.texts] == texts
    lefts = [path.vertices[:, 0].min() for path in cells.get_paths()]
    widths = [np.ptp(path.vertices[:, 0]) for path in cells.get_paths()]
    assert np.allclose(np.stack([lefts, widths], 1), np.array(columns) - [0.5, 0])
    low, high = cells.get_clim()
    assert low == -high == -np.abs(expected).max()


def test_sequences_show_no_percentages_of_nothing() -> None:
    check = made_up_check()
    largest = check["ksd"]["contribution"].sel(view="content-1").max().item()
    ax = plot_sequences(check, view="content-1", num=1)
    assert labels(ax)[0].endswith(f"  ({largest:.2g})")
    assert ax.get_ylabel() == "index of the sequence, from 0\n(part of the statistic)"
    strongest = np.abs(cells_of(ax).get_array()).max()
    assert cells_of(ax).get_clim()[1] == pytest.approx(strongest / 0.3)  # pale
    assert "−" in labels(plot_sequences(check, num=30))[-1]


@pytest.mark.parametrize(
    ("symbols", "longest", "written"),
    [
        (list("ab"), 12, {"a", "b"}),
        ([*"abcdefg", "<unknown>"], 40, {*"abcdefg", "<…"}),
        (PHONEMES, 12, None),
        ([f"{number}-phoneme" for number in range(8)], 30, None),
        (list("ACGT"), 200, set()),
        (PHONEMES, 200, set()),
        (["$x$", "\\", " ", "\n"], 12, {"$x$", "\\", "␣", "\\n"}),
    ],
)
def test_symbols_stay_within_their_cells(symbols: list[str], longest: int, written: set[str] | None) -> None:
    ax = plot_sequences(misfit(made_up_check(symbols, longest=longest, num_sequences=12)))
    ax.figure.draw_without_rendering()
    cell = np.abs(np.diff(ax.transData.transform([(0, 0), (1, 0.8)]), axis=0))[0]
    for text in ax.texts:
        assert (text.get_window_extent().size <= cell).all()
        assert not text.get_parse_math()
    found = set(words(ax))
    assert found == written or (
        written is None and len(found) >= len(symbols) / 2 and any("…" in text for text in found)
    )


def test_letters_can_be_read_on_their_cells() -> None:
    ax = plot_sequences(misfit(made_up_check()))
    ax.figure.draw_without_rendering()
    faces = iter(cells_of(ax).get_facecolor())
    rows = [sum(text.get_position()[1] == row for text in ax.texts) for row in range(10)]
    colors = iter(ax.texts)
    for length in rows:
        for _ in range(length):
            dark = next(faces)[:3].mean() < 0.5
            if dark:
                assert next(colors).get_color() == "white"
            else:
                next(colors)
        next(faces)
    assert {text.get_color() for text in ax.texts} == {"white", "black"}


def test_an_empty_sequence_is_a_gap_only() -> None:
    check = misfit(made_up_check(num_sequences=3))
    attribution = check["ksd"]["attribution"].values
    attribution[:, 0, 1:] = np.nan
    observed = check["ksd_data"].to_dataset()
    tokens, lengths = observed["token"].values, observed["length"].values
    tokens[0], lengths[0] = -1, 0
    shown = np.tile([0, 1, 2], (5, 1))
    check = changed(check, "ksd", attribution=attribution, contribution=3.0 - shown, shown_sequence=shown)
    check["ksd_data"]["length"].values[:] = lengths
    check["ksd_data"]["token"].values[:] = tokens
    ax = plot_sequences(check, num=1)
    assert (len(ax.texts), len(cells_of(ax).get_paths())) == (0, 1)


def test_positions_are_counted_from_1() -> None:
    ax = plot_sequences(made_up_check(longest=12))
    assert "position, counted from 1" in ax.get_xlabel()
    for place, label in zip(ax.get_xticks(), ax.get_xticklabels(), strict=True):
        assert place == int(label.get_text()) - 1  # a cell lies around its index
    assert len(ax.get_xticks()) > 3


def with_equal_sequences() -> xr.DataTree:
    """The sequences 1, 4, 5 and 7 are equal, and so are their parts of the statistic, but not that of 7."""
    check = misfit(made_up_check(num_sequences=8))
    observed = check["ksd_data"].to_dataset()
    tokens, lengths = observed["token"].values, observed["length"].values
    for row in (4, 5, 7):
        tokens[row], lengths[row] = tokens[1], lengths[1]
    inside = np.arange(13) <= lengths[:, None]
    parts = np.where(inside, np.arange(1, 9)[:, None] * np.linspace(0.5, 1.5, 13), np.nan)
    parts[[4, 5]] = parts[1]
    contribution = np.nansum(parts, -1)
    order = np.argsort(-contribution, kind="stable")
    check["ksd_data"]["token"].values[:] = tokens
    check["ksd_data"]["length"].values[:] = lengths
    return changed(
        check,
        "ksd",
        attribution=np.tile(parts[order], (5, 1, 1)),
        contribution=np.tile(contribution, (5, 1)),
        shown_sequence=np.tile(order, (5, 1)),
        statistic=np.full(5, contribution.sum()),
    )


@pytest.mark.parametrize("num", [1, 6, 99])
def test_equal_sequences_have_one_row_with_the_share_of_each(num: int) -> None:
    check = with_equal_sequences()
    one = check["ksd"].to_dataset().sel(view="content-2")
    ax = plot_sequences(check, num=num)
    rows = [row for row in one["shown_sequence"].values.tolist() if row not in (4, 5)][:num]
    assert len(labels(ax)) == len(rows) == min(num, 6)  # 7 differs in its contribution
    for row, label in zip(rows, labels(ax), strict=True):
        share = f"{100 * float(one['contribution'].sel(sequence=row) / one['statistic']):.1f} %"
        assert label == (f"1 ×3  ({share} each)" if row == 1 else f"{row}  ({share})")
    repeated = any(" ×3 " in label for label in labels(ax))
    assert ("×10: ten equal sequences" in ax.get_ylabel()) == repeated
    assert repeated == (num > 1)
    place = one["shown_sequence"].values.tolist().index(rows[-1])
    drawn = np.asarray(cells_of(ax).get_array())
    expected = one["attribution"].values[place]
    expected = expected[~np.isnan(expected)]
    assert drawn[-len(expected) :].tolist() == expected.tolist()


def test_of_partitioned_data_there_may_be_more_equal_sequences() -> None:
    check = with_equal_sequences()
    check["ksd_data"].attrs["num_sequences"] = 1000
    assert next(label for label in labels(plot_sequences(check)) if "×" in label).startswith("1 ×3 or more  (")
