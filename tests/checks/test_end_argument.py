# SPDX-License-Identifier: Apache-2.0
"""The end symbols that the user names, or that the edits imply."""

from __future__ import annotations

import pytest

from pyro_ksd.checks.end_argument import chosen_ends, unnamed_ends
from pyro_ksd.edits.neighborhoods import BeforeEnd, zs
from pyro_ksd.sequences.container import Sequences

ENDED = Sequences.of(["ab.", "b.", ".", "a.", "ba."])
OPEN = Sequences.of(["ab", "b", "a", "a", "ba"])


def test_the_codes_of_the_ends() -> None:
    assert chosen_ends(".", None, ENDED) == (0,)
    assert chosen_ends(["b", "."], None, ENDED) == (0, 2)
    assert chosen_ends(None, None, ENDED) == ()
    assert chosen_ends(None, zs(), ENDED) == ()
    assert chosen_ends(None, BeforeEnd(zs()), ENDED) == (0,)
    assert chosen_ends(None, BeforeEnd(zs()), OPEN) == ()
    assert chosen_ends(0, None, Sequences.of([[1, 0]], 2)) == (0,)
    with pytest.raises(ValueError, match="end: expected the symbol with which every sequence ends"):
        chosen_ends("?", None, ENDED)


def test_what_is_said_of_unnamed_ends() -> None:
    assert unnamed_ends(OPEN) == ""
    assert unnamed_ends(ENDED).startswith("all 5 sequences end with '.', which stands nowhere else")
    assert "pass end='.', or" in unnamed_ends(ENDED)
    several = Sequences.of(["ab.", "b!", ".", "a.", "ba!"] * 2)
    assert unnamed_ends(several).startswith("all 10 sequences end with one of ['!', '.'], which stand nowhere else")
    assert "pass end=['!', '.'], or" in unnamed_ends(several)
