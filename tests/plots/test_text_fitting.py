# SPDX-License-Identifier: Apache-2.0
"""Texts that fit into the room there is."""

from __future__ import annotations

from synthetic import PHONEMES

from pyro_ksd.plots.text_fitting import abbreviations, fitting_texts, text_width


def test_abbreviations_keep_the_side_that_tells_symbols_apart() -> None:
    width = text_width("phon…", 10)
    assert set(abbreviations(PHONEMES[:3], width, 10).values()) == {"…-AH0", "…e-B", "…e-CH"}
    assert set(abbreviations(["cat-noun", "dog-noun"], width, 10).values()) == {"cat-…", "dog-…"}
    assert abbreviations(["phoneme"], text_width("…", 10), 10) == {"phoneme": "…"}
    assert abbreviations(["phoneme"], 0, 10) == {"phoneme": ""}


def test_letters_are_as_large_as_they_can_be() -> None:
    symbols = list("abcdefghi")
    assert fitting_texts(symbols, 20, 20) == ({symbol: symbol for symbol in symbols}, 9)
    assert fitting_texts(symbols, 20, 10)[1] == 7
    assert set(fitting_texts(symbols, 20, 5)[0].values()) == {""}
    assert fitting_texts([*symbols, "long"], 14, 20)[0]["long"] == "l…"
    assert set(fitting_texts([f"phoneme-{number:03}" for number in range(60)], 12, 20)[0].values()) == {""}
