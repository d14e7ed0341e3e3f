# SPDX-License-Identifier: Apache-2.0
"""Checks of the sequences that functions of the engine take."""

from __future__ import annotations

import re

import pytest

from pyro_ksd.sequences.argument_checks import check_pair, check_sequences
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
