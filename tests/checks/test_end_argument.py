# SPDX-License-Identifier: Apache-2.0
"""The end symbol that the user names, or that the edits imply."""

from __future__ import annotations

from typing import Any

import pytest

from pyro_ksd.checks.end_argument import end_code, unnamed_end
from pyro_ksd.edits.neighborhoods import BeforeEnd, zs
from pyro_ksd.sequences.container import Sequences

ENDED = Sequences.of(["ab.", "b.", ".", "a.", "ba."])
OPEN = Sequences.of(["ab", "b", "a", "a", "ba"])


def test_the_code_of_the_end() -> None:
    assert end_code(".", None, ENDED) == 0
    assert end_code("b", None, ENDED) == 2
    assert end_code(None, None, ENDED) is None
    assert end_code(None, zs(), ENDED) is None
    assert end_code(None, BeforeEnd(zs()), ENDED) == 0
    assert end_code(None, BeforeEnd(zs()), OPEN) is None
    assert end_code(0, None, Sequences.of([[1, 0]], 2)) == 0


@pytest.mark.parametrize("end", ["?", 0, True, ["."], ""])
def test_other_symbols(end: Any) -> None:
    with pytest.raises(ValueError, match="end: expected the symbol with which every sequence ends, out of"):
        end_code(end, None, ENDED)


def test_what_is_said_of_an_unnamed_end() -> None:
    assert unnamed_end(OPEN) == ""
    assert unnamed_end(ENDED).startswith("all 5 sequences end with '.', which stands nowhere else")
    assert "pass end='.', or" in unnamed_end(ENDED)
