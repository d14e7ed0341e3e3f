# SPDX-License-Identifier: Apache-2.0
"""Markov random fields on a chain against enumeration."""

from __future__ import annotations

import itertools
import math
from itertools import product

import pytest
import torch

from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.models import LinearChainMRF
from pyro_ksd.sequences.container import Sequences

S, M = 3, 5
GENERATOR = torch.Generator().manual_seed(0)
PAIRWISE = torch.randn(S, S, dtype=torch.double, generator=GENERATOR)
UNARY = torch.randn(S, dtype=torch.double, generator=GENERATOR)
LENGTH = torch.randn(M + 1, dtype=torch.double, generator=GENERATOR)
FORBIDDING = PAIRWISE.masked_fill(torch.eye(S, dtype=torch.bool), -torch.inf)
SPACE = Sequences.of([list(x) for length in range(M + 1) for x in product(range(S), repeat=length)], S)


def potential(x: list[int], pairwise: torch.Tensor, unary: torch.Tensor, length: torch.Tensor) -> float:
    pairs = sum(pairwise[a, b].item() for a, b in itertools.pairwise(x))
    return length[len(x)].item() + sum(unary[a].item() for a in x) + pairs


@pytest.mark.parametrize("pairwise", [PAIRWISE, FORBIDDING], ids=["positive", "with zeros"])
def test_against_enumeration(pairwise):
    model = LinearChainMRF(pairwise, UNARY, LENGTH)
    target = torch.tensor([potential(x, pairwise, UNARY, LENGTH) for x in SPACE.to_lists()], dtype=torch.double)
    torch.testing.assert_close(model.log_normalizer, target.logsumexp(0), rtol=1e-13, atol=1e-13)
    found = model.log_joint(SPACE)
    torch.testing.assert_close(found, target - target.logsumexp(0), rtol=1e-12, atol=1e-12)
    assert found.exp().sum().item() == pytest.approx(1, abs=1e-12)


def test_default_potentials():
    model = LinearChainMRF(PAIRWISE, max_length=M)
    plain = LinearChainMRF(PAIRWISE, torch.zeros(S).double(), torch.tensor([-torch.inf, *[0.0] * M]).double())
    assert model.log_joint(SPACE)[0] == -math.inf
    assert torch.equal(model.log_joint(SPACE), plain.log_joint(SPACE))
    assert model.log_joint(SPACE).exp().sum().item() == pytest.approx(1, abs=1e-12)
    assert model.event_shape == (M,)


@pytest.mark.parametrize("longest", [1, M])
def test_parameters_in_single_precision_are_normalized_in_double_precision(longest: int) -> None:
    short = [rows for rows in SPACE.to_lists() if len(rows) <= longest]
    model = LinearChainMRF(PAIRWISE.float(), UNARY.float(), LENGTH[: longest + 1].float())
    assert model.log_joint(Sequences.of(short, S)).exp().sum().item() == pytest.approx(1, abs=1e-12)


def test_longer_sequences_are_impossible():
    model = LinearChainMRF(PAIRWISE, max_length=2)
    data = Sequences.of([[0, 1], [2]], S)
    edits = zs().edits(data)
    assert model.log_joint(Sequences.of([[0, 1, 2]], S)).item() == -math.inf
    too_long_or_empty = (edits.new_lengths(data.lengths) > 2) | (edits.new_lengths(data.lengths) < 1)
    assert (model.log_ratio(data, edits) == -math.inf).equal(too_long_or_empty)
    assert too_long_or_empty.any()


def test_log_ratio_needs_no_normalizer(monkeypatch):
    def refuse(self):
        raise AssertionError("the normalizer was computed")

    model = LinearChainMRF(PAIRWISE, UNARY, LENGTH)
    monkeypatch.setattr(LinearChainMRF, "_log_normalizer", property(refuse))
    data = Sequences.of([[0, 1]], S)
    assert model.log_ratio(data, zs().edits(data)).isfinite().all()


def test_drawn_lengths_and_pairs():
    model = LinearChainMRF(FORBIDDING, UNARY, LENGTH)
    count = 20_000
    drawn = model.draw(count, torch.Generator().manual_seed(1))
    exact = model.log_joint(SPACE).exp()
    shares = drawn.lengths.bincount(minlength=M + 1) / count
    by_length = torch.zeros(M + 1, dtype=torch.double).index_add_(0, SPACE.lengths, exact)
    torch.testing.assert_close(shares.double(), by_length, atol=5 * (0.25 / count) ** 0.5, rtol=0)
    last = [x[-2:] for x in drawn.to_lists() if len(x) == M]
    for pair in product(range(S), repeat=2):
        ends = torch.tensor([len(x) == M and tuple(x[-2:]) == pair for x in SPACE.to_lists()])
        target = (exact[ends].sum() / by_length[M]).item()
        assert sum(tuple(x) == pair for x in last) / len(last) == pytest.approx(
            target, abs=5 * (0.25 / len(last)) ** 0.5
        )
        assert (target == 0) == (pair[0] == pair[1])


def test_large_potentials_do_not_overflow():
    model = LinearChainMRF(PAIRWISE * 1000, UNARY, max_length=50)
    assert model.log_normalizer.isfinite()
    assert model.draw(10).lengths.max() <= 50


def test_gradient_of_the_normalizer_is_the_expected_count():
    unary = UNARY.clone().requires_grad_()
    model = LinearChainMRF(FORBIDDING, unary, LENGTH)
    model.log_normalizer.backward()
    counts = torch.stack([(SPACE.padded(-1) == symbol).sum(-1) for symbol in range(S)], 1).double()
    expected = (model.log_joint(SPACE).detach().exp()[:, None] * counts).sum(0)
    torch.testing.assert_close(unary.grad, expected, rtol=1e-12, atol=1e-12)


def test_batch_of_normalizers():
    pairwise = torch.stack([PAIRWISE, FORBIDDING])
    model = LinearChainMRF(pairwise, UNARY, LENGTH)
    target = torch.stack([LinearChainMRF(w, UNARY, LENGTH).log_normalizer for w in pairwise])
    torch.testing.assert_close(model.log_normalizer, target)
    assert model.expand((4, 2)).log_normalizer.shape == (4, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "expected max_length or the log-potentials length, found neither; state max_length=M"),
        ({"max_length": 0}, "max_length: expected an integer of at least 1, found 0"),
        ({"max_length": -3}, "max_length: expected an integer of at least 1, found -3"),
        ({"length": LENGTH, "max_length": 7}, r"length: .* shape \[..., 8\], found torch.float64 \[6\]"),
        ({"length": LENGTH[0]}, "length: expected at least one dimension"),
        ({"pairwise": PAIRWISE[:2], "max_length": 2}, r"pairwise: .* \[..., 3, 3\], found torch.float64 \[2, 3\]"),
        ({"unary": UNARY[:2], "max_length": 2}, r"unary: .* shape \[..., 3\], found torch.float64 \[2\]"),
        ({"unary": UNARY * torch.inf, "max_length": 2}, r"unary: .* finite or -inf, found inf at index \[\d\]"),
        ({"pairwise": PAIRWISE * torch.nan, "max_length": 2}, r"pairwise: .* found nan at index \[0, 0\]"),
        ({"length": LENGTH * torch.nan}, r"length: expected log-potentials .* found nan at index \[0\]"),
        ({"unary": UNARY.expand(2, S), "length": LENGTH.expand(3, M + 1)}, r"unary \[2\], length \[3\]; give all"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        LinearChainMRF(**{"pairwise": PAIRWISE, **options})


def test_everything_forbidden():
    model = LinearChainMRF(PAIRWISE, torch.full((S,), -torch.inf), max_length=4)
    with pytest.raises(ValueError, match="at least one possible sequence, found log-potentials that forbid all; allow"):
        model.log_prob(torch.tensor([0]))


def test_each_field_of_a_batch_must_allow_a_sequence():
    lengths = torch.stack([LENGTH, torch.full_like(LENGTH, -torch.inf)])
    with pytest.raises(ValueError, match="expected at least one possible sequence, found log-potentials that forbid"):
        LinearChainMRF(PAIRWISE, UNARY, lengths).log_normalizer.sum()


def test_sequences_that_are_too_long_for_every_field_of_a_large_batch():
    model = LinearChainMRF(PAIRWISE, UNARY, LENGTH.expand(12, -1))
    assert model.log_prob(torch.zeros(M + 3, dtype=torch.long)).tolist() == [-math.inf] * 12
    assert model.log_prob(torch.zeros(M, dtype=torch.long)).isfinite().all()
