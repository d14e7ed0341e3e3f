# SPDX-License-Identifier: Apache-2.0
"""Blocks of draws: each has random numbers of its own, and results come in order."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from pyro_ksd.common.block_runs import DrawBlock, draw_blocks, run_blocks, spread
from pyro_ksd.common.checkpoints import Checkpoint
from pyro_ksd.common.progress import progress_bar


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def numbers(block: DrawBlock) -> dict[str, Tensor]:
    return {"value": torch.rand(block.size, generator=block.generator())}


def found(blocks: list[DrawBlock], checkpoint: Checkpoint | None = None, kept_as: str = "draws") -> list[float]:
    with progress_bar(show=False, desc="draws", unit="draw", total=blocks[-1].end) as bar:
        done = []
        values = []
        for part in run_blocks(
            numbers, blocks, name="numbers", kept_as=kept_as, what="numbers", bar=bar, checkpoint=checkpoint
        ):
            done.append(bar.done)
            values += part["value"].tolist()
        assert done == [block.end for block in blocks]
    return values


@pytest.mark.parametrize(("num_draws", "size"), [(1, 1), (7, 3), (6, 3), (5, 9)])
def test_blocks_are_all_draws(num_draws: int, size: int) -> None:
    blocks = draw_blocks(num_draws, size, seeded())
    assert [draw for block in blocks for draw in range(block.begin, block.end)] == list(range(num_draws))
    assert all(block.size == size for block in blocks[:-1])


def test_no_two_blocks_have_the_same_random_numbers() -> None:
    blocks = draw_blocks(20_000, 1, seeded())
    assert len({block.seed % 2**32 for block in blocks}) == 20_000  # torch.Generator uses no more bits
    values = torch.cat([numbers(block)["value"] for block in blocks])
    assert float(values.mean()) == pytest.approx(0.5, abs=4 / (12 * 20_000) ** 0.5)
    assert abs(float(torch.corrcoef(torch.stack([values[:-1], values[1:]]))[0, 1])) < 4 / 20_000**0.5


def test_seeds_depend_on_the_seed_and_the_number_of_the_block_alone() -> None:
    few, many = draw_blocks(10, 5, seeded()), draw_blocks(100, 5, seeded())
    assert few == many[:2]
    assert draw_blocks(10, 5, seeded(1))[0].seed != few[0].seed
    generator = seeded()
    assert draw_blocks(10, 5, generator)[0].seed != draw_blocks(10, 5, generator)[0].seed


@pytest.mark.parametrize("threads", [1, 2])
def test_results_come_in_the_order_of_the_blocks(threads: int) -> None:
    blocks = draw_blocks(10, 3, seeded())
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        assert list(spread(lambda block: block.begin, blocks, name="begins", in_threads=True)) == [0, 3, 6, 9]
    finally:
        torch.set_num_threads(before)


def test_finished_blocks_are_kept_and_those_that_lack_are_computed(tmp_path: Path) -> None:
    blocks = draw_blocks(10, 3, seeded())
    expected = found(blocks)
    kept = Checkpoint(tmp_path / "file")
    kept.begin({})
    kept.put("draws, block from 3", {"value": torch.tensor([1.0, 2.0, 3.0])})
    assert found(blocks, kept) == [*expected[:3], 1.0, 2.0, 3.0, *expected[6:]]
    assert found(blocks, kept, kept_as="others") == expected
    again = kept.get("draws, block from 9")
    assert again is not None
    assert again["value"].tolist() == expected[9:]


def test_an_interruption_says_what_was_done() -> None:
    def stopped(block: DrawBlock) -> dict[str, Tensor]:
        if block.begin == 6:
            raise KeyboardInterrupt
        return numbers(block)

    with progress_bar(show=False, desc="draws", unit="draw", total=10) as bar:
        parts = run_blocks(stopped, draw_blocks(10, 3, seeded()), name="x", kept_as="x", what="numbers", bar=bar)
        with pytest.raises(KeyboardInterrupt, match="stopped after 6 of 10 numbers, which are lost"):
            list(parts)
