# SPDX-License-Identifier: Apache-2.0
"""Exact samples by rejection."""

from __future__ import annotations

import pytest
import torch
from example_models import Unsampled, bounded_chain
from torch import Tensor

from pyro_ksd.models.wrappers.constrained import constrain
from pyro_ksd.models.wrappers.rejection import accepted, accepted_given
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.sequences.covariates import Covariates

CHAIN = bounded_chain()


def test_rejection_adapts_its_batches() -> None:
    class Counting(Unsampled):
        calls: list[int] = []  # noqa: RUF012

        def draw(self, num_sequences: int, generator: torch.Generator | None = None) -> Sequences:
            self.calls.append(num_sequences)
            return CHAIN.draw(num_sequences, generator)

    rare = constrain(Counting(CHAIN), lambda x: (x.lengths == 3) & (x.tokens[:, :3].sum(1) == 6))
    assert rare.can_draw
    assert len(rare.draw(100, torch.Generator().manual_seed(0))) == 100
    share = float(CHAIN.log_joint(Sequences.of([[2, 2, 2]], 3)).exp())
    assert share < 0.05
    assert len(Counting.calls) < 10
    assert sum(Counting.calls) < 2 * 100 / share


def test_rejection_gives_up() -> None:
    calls = 0

    def never(x: Sequences) -> Tensor:
        nonlocal calls
        calls += len(x)
        return torch.zeros(len(x), dtype=torch.bool)

    model = constrain(CHAIN, never, max_proposals=5_000)
    assert model.can_draw
    with pytest.raises(
        ValueError, match=r"expected 3 sequences .* found that 0 of 5000 proposals .* pass your own sampler"
    ):
        model.draw(3)
    assert calls == 5_000
    with pytest.raises(ValueError, match=r"max_proposals: expected an integer of at least 1, found 0"):
        constrain(CHAIN, never, max_proposals=0)
    with pytest.raises(ValueError, match="found that 0 of 1 proposals of the model were"):
        constrain(CHAIN, never, max_proposals=1).draw(3)


def proposals(num_sequences: int, generator: torch.Generator | None) -> Sequences:
    return Sequences.of(torch.randint(3, (num_sequences, 1), generator=generator), 3)


def test_the_first_proposals_inside_are_taken_in_their_order() -> None:
    def numbered(num_sequences: int, generator: torch.Generator | None) -> Sequences:
        begin = sum(asked)
        asked.append(num_sequences)
        return Sequences.of(torch.arange(begin, begin + num_sequences)[:, None] % 1000, 1000)

    asked: list[int] = []
    found = accepted(
        numbered, lambda x: x.tokens[:, 0] % 100 == 7, 5, None, max_proposals=10_000, advice="try something else"
    )
    assert found.to_lists() == [[7], [107], [207], [307], [407]]
    assert asked[0] == 128  # at least so many at once
    assert len(asked) < 5


def test_no_more_than_the_permitted_number_is_proposed() -> None:
    asked: list[int] = []

    def counted(num_sequences: int, generator: torch.Generator | None) -> Sequences:
        asked.append(num_sequences)
        return proposals(num_sequences, generator)

    def never(x: Sequences) -> Tensor:
        return torch.zeros(len(x), dtype=torch.bool)

    message = "expected 2 sequences inside the set, found that 0 of 300 proposals of the model were; try something else"
    with pytest.raises(ValueError, match=message):
        accepted(counted, never, 2, None, max_proposals=300, advice="try something else")
    assert sum(asked) == 300


def test_proposals_follow_the_generator() -> None:
    def draw(seed: int) -> list[list[object]]:
        generator = torch.Generator().manual_seed(seed)
        inside = accepted(proposals, lambda x: x.tokens[:, 0] > 0, 40, generator, max_proposals=1000, advice="")
        return inside.to_lists()

    assert draw(1) == draw(1) != draw(2)
    assert {tuple(x) for x in draw(1)} == {(1,), (2,)}


def test_each_row_of_covariates_gets_a_sequence_of_its_own() -> None:
    """In the order of the rows, although some of them wait for several rounds of proposals."""
    rounds: list[int] = []

    def propose(covariates: Covariates, generator: torch.Generator | None) -> Sequences:
        assert isinstance(covariates, Tensor)
        rounds.append(len(covariates))
        second = torch.randint(2, covariates.shape, generator=generator)
        return Sequences.of(torch.stack([covariates, second], 1), 300)

    generator = torch.Generator().manual_seed(0)
    options = {"max_proposals": 10_000, "advice": "try something else"}
    found = accepted_given(propose, lambda x: x.tokens[:, 1] == 1, torch.arange(300), generator, **options)  # type: ignore[arg-type]
    assert found.to_lists() == [[row, 1] for row in range(300)]
    assert len(rounds) > 2
    with pytest.raises(
        ValueError, match=r"for each of 300 rows of covariates, found none for 300 of them .*; try someth"
    ):
        accepted_given(propose, lambda x: x.tokens[:, 1] > 1, torch.arange(300), generator, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rows", "most", "expected"), [(10, 100, [100]), (3, 100, [102]), (10, 200, [120, 80]), (300, 700, [300, 300, 300])]
)
def test_rows_of_covariates_get_several_proposals_at_once(rows: int, most: int, expected: list[int]) -> None:
    """About 128 in a round, or one for each row, and no more rounds than the permitted number needs."""
    asked: list[int] = []

    def propose(covariates: Covariates, generator: torch.Generator | None) -> Sequences:
        asked.append(len(covariates))
        return proposals(len(covariates), generator)

    message = f"for each of {rows} rows of covariates, found none for {rows} of them in {sum(expected)} proposals"
    with pytest.raises(ValueError, match=message):
        accepted_given(
            propose,
            lambda x: x.lengths < 0,
            torch.arange(rows),  # type: ignore[arg-type]
            None,
            max_proposals=most,
            advice="",
        )
    assert asked == expected


def test_the_first_proposal_inside_is_taken_for_each_row() -> None:
    def numbered(covariates: Covariates, generator: torch.Generator | None) -> Sequences:
        return Sequences.of(torch.arange(len(covariates))[:, None], 200)

    found = accepted_given(
        numbered,
        lambda x: x.tokens[:, 0] % 7 == 3,
        torch.arange(4),  # type: ignore[arg-type]
        None,
        max_proposals=1000,
        advice="",
    )
    assert found.to_lists() == [[3], [38], [66], [101]]  # the first from 0, 32, 64 and 96 on


def test_as_many_are_proposed_as_should_be_enough() -> None:
    """Of every three proposals the first one is inside; never fewer than 128 are proposed."""
    calls: list[int] = []

    def propose(count: int, generator: torch.Generator | None) -> Sequences:
        calls.append(count)
        return Sequences.of([[index % 3] for index in range(count)], 3)

    found = accepted(propose, lambda x: x.tokens[:, 0] == 0, 1000, None, max_proposals=10**6, advice="")
    assert len(found) == 1000
    assert calls == [1000, 1991, 128]  # 334 of 1000 are inside: 666 * 1001 / 335 is 1990.04
