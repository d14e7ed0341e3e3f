# SPDX-License-Identifier: Apache-2.0
"""Weighted automata in compiled loops against those of torch."""

from __future__ import annotations

import pytest
import torch

from pyro_ksd.common.compilation import is_compiled
from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.models.distributions.weighted_automaton import WeightedAutomaton
from pyro_ksd.sequences.container import Sequences

pytestmark = pytest.mark.skipif(not is_compiled(), reason="needs numba")


@pytest.mark.parametrize("seed", range(4))
def test_numbers_are_those_of_torch(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(seed)
    members, size, states = 5, 3, 4
    first = torch.randn(members, states, dtype=torch.double, generator=generator)
    by_symbol = torch.randn(members, size, states, states, dtype=torch.double, generator=generator)
    by_symbol[0, 2] = 0.0
    last = torch.randn(members, states, dtype=torch.double, generator=generator)
    tokens = torch.randint(0, size, (50, 9), generator=generator)
    data = Sequences.of(tokens, size, lengths=torch.randint(0, 10, (50,), generator=generator))
    which = torch.randint(0, members, (50,), generator=generator)
    edits = zs().edits(data)
    found = []
    for switch in ("0", "1"):
        monkeypatch.setenv("PYRO_KSD_COMPILED", switch)
        automata = WeightedAutomaton(first, by_symbol, last)
        found.append((automata.log_joint(data.padded(-1), which), automata.log_ratio(data, edits, which)))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-9, atol=1e-9, equal_nan=True)
        assert one.isnan().any()
        assert one.isfinite().any()
        assert (one == -torch.inf).any()


def test_nothing_is_found_of_no_sequences() -> None:
    one = torch.ones(1, 1, dtype=torch.double)
    automaton = WeightedAutomaton(one, one.view(1, 1, 1, 1), one)
    none = Sequences(torch.zeros(0, 3, dtype=torch.long), torch.zeros(0, dtype=torch.long), 1)
    assert automaton.log_joint(none.tokens, none.lengths).tolist() == []
    assert automaton.log_ratio(none, zs().edits(none)).tolist() == []
