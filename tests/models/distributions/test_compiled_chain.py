# SPDX-License-Identifier: Apache-2.0
"""Chains drawn in a compiled loop against those of torch."""

from __future__ import annotations

import pytest
import torch

from pyro_ksd.common.compilation import is_compiled
from pyro_ksd.models.distributions.markov import MarkovSequence

pytestmark = pytest.mark.skipif(not is_compiled(), reason="needs numba")


def chain(order: int, batch: tuple[int, ...] = ()) -> MarkovSequence:
    generator = torch.Generator().manual_seed(order)
    probs = torch.rand(*batch, *[4] * (order + 1), dtype=torch.double, generator=generator)
    probs[..., 2] = 0.0
    return MarkovSequence(probs / probs.sum(-1, keepdim=True), order=order)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_sequences_are_those_of_torch(order: int, batch: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for switch in ("0", "1"):
        monkeypatch.setenv("PYRO_KSD_COMPILED", switch)
        torch.manual_seed(4)
        found.append(chain(order, batch).sample((200,)))
    assert found[1].equal(found[0])
    assert found[1].dtype == found[0].dtype
    assert set(found[1].unique().tolist()) == {-1, 0, 1}  # the symbol 2 has probability 0


def test_sequences_that_are_too_long_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    probs = torch.tensor([[0.99, 0.01], [1.0, 0.0]], dtype=torch.double)
    said = []
    for switch in ("0", "1"):
        monkeypatch.setenv("PYRO_KSD_COMPILED", switch)
        torch.manual_seed(4)
        with pytest.raises(ValueError, match="of 50 sequences were still alive at max_length=20; raise") as raised:
            MarkovSequence(probs, max_length=20).sample((50,))
        said.append(str(raised.value))
    assert said[0] == said[1]


def test_nothing_is_drawn_from_no_sequences(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for switch in ("0", "1"):
        monkeypatch.setenv("PYRO_KSD_COMPILED", switch)
        found.append(chain(1).sample((0,)))
    assert found[1].shape == found[0].shape
    assert len(found[1]) == 0
