# SPDX-License-Identifier: Apache-2.0
"""Checks of the sequences that functions of the engine take."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pyro_ksd.sequences.argument_checks import check_pair, check_sequences, unknown_symbols
from pyro_ksd.sequences.container import Sequences


@pytest.mark.parametrize("wrong", [None, "ab", ["ab"], 3])
def test_nothing_but_sequences_will_do(wrong: object) -> None:
    data = Sequences.of(["ab"])
    check_sequences("start", data)
    for call in (lambda: check_sequences("y", wrong), lambda: check_pair(data, wrong)):
        with pytest.raises(ValueError, match=rf"^y: expected Sequences, made by .*, found {re.escape(repr(wrong))}$"):
            call()


def test_a_class_is_no_instance() -> None:
    with pytest.raises(ValueError, match=r"found the class Sequences; pass an instance, Sequences\(...\)$"):
        check_sequences("start", Sequences)


@pytest.mark.parametrize("other", [Sequences.of(["ac"]), Sequences.of(["ab"], "abc"), Sequences.of([[0, 1]], 2)])
def test_codes_are_compared_only_within_one_alphabet(other: Sequences) -> None:
    x = Sequences.of(["ab"])
    check_pair(x, Sequences.of(["ba"]))
    message = f"x and y: expected sequences over one alphabet, found two different ones (of 2 and {other.alphabet_size}"
    with pytest.raises(ValueError, match=re.escape(message)):
        check_pair(x, other)


@pytest.mark.parametrize(
    ("data", "alphabet", "known", "words"),
    [
        (["AC", "CGA", "GTN", "TTN"], None, 4, "'N' (2 times, first in sequence 2)"),
        (["AC", "*A", "TTG", "GC"], None, 4, "'*' (once, first in sequence 1)"),
        (["AAB", "BCC", "DDD", "E"], None, 3, "'E' (once, first in sequence 3), 'C' (2"),
        ([[0, 3, 1], [], [3, 2, 2, 4]], None, 4, "4 (once, first in sequence 2)"),
        ([[0, 3, 1], [3]], 9, 2, "8 (in no sequence), 7 (in no sequence), 6 (in no seq"),
        (["AC\n", "CA\n"], None, 2, "'\\n' (2 times, first in sequence 0); if that is th"),
    ],
)
def test_unknown_symbols(data: list[Any], alphabet: int | None, known: int, words: str) -> None:
    found = unknown_symbols(Sequences.of(data, alphabet), known)
    assert found.startswith(f"perhaps it does not know {words}")
    assert found.endswith("..." if known == 2 and alphabet else ("line.strip()" if "\\n" in words else ")"))
