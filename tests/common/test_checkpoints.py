# SPDX-License-Identifier: Apache-2.0
"""Finished parts in a file."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
import torch

from pyro_ksd.common.checkpoints import Checkpoint, digest

PART = {"statistic": torch.tensor([[1.0, torch.nan]]).double(), "count": torch.tensor([3])}


def test_parts_are_kept(tmp_path: Path) -> None:
    kept = Checkpoint(tmp_path / "file")
    kept.begin({"seed": "0", "model": "walk"})
    assert kept.get("first") is None
    kept.put("first", PART)
    again = Checkpoint(str(tmp_path / "file"))
    again.begin({"model": "walk", "seed": "0"})
    found = again.get("first")
    assert found is not None
    assert list(found) == list(PART)
    for name, value in PART.items():
        torch.testing.assert_close(found[name], value, rtol=0, atol=0, equal_nan=True)
    assert again.get("second") is None


@pytest.mark.parametrize(
    ("work", "words"),
    [
        ({"seed": "1", "model": "walk"}, "differs in: seed;"),
        ({"seed": "1", "model": "chain"}, "differs in: seed, model;"),
        ({"seed": "0"}, "differs in: model;"),
        ({"seed": "0", "model": "walk", "views": "all"}, "differs in: views;"),
    ],
)
def test_other_work_is_refused(work: dict[str, str], words: str, tmp_path: Path) -> None:
    kept = Checkpoint(tmp_path / "file")
    kept.begin({"seed": "0", "model": "walk"})
    with pytest.raises(ValueError, match=words):
        Checkpoint(tmp_path / "file").begin(work)


def test_files_of_others_are_refused(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("Dear reader, this is no database at all. " * 30)
    with pytest.raises(ValueError, match=r"expected a file that an earlier check has written.*letter\.txt"):
        Checkpoint(tmp_path / "letter.txt").begin({})
    with pytest.raises(ValueError, match="expected the name of a file, found the folder"):
        Checkpoint(tmp_path)
    with pytest.raises(ValueError, match="in a folder that exists"):
        Checkpoint(tmp_path / "nowhere" / "file")
    with pytest.raises(ValueError, match="checkpoint: expected the name of a file, found 3"):
        Checkpoint(3)  # type: ignore[arg-type]


def test_digests_tell_contents_apart() -> None:
    one = torch.tensor([[1, 2]])
    assert digest(one, one) == digest(one.clone(), one) != digest(one)
    assert digest(one) != digest(one.int())
    assert digest(one) != digest(one.T)
    assert digest(torch.tensor([0.1]).double()) != digest(torch.tensor([0.1 + 1e-16]).double().nextafter(torch.ones(1)))


def test_a_process_that_is_killed_while_it_writes_leaves_whole_parts(tmp_path: Path) -> None:
    kept = Checkpoint(tmp_path / "file")
    kept.begin({})
    value = torch.arange(200_000)
    child = os.fork()
    if child == 0:
        index = 0
        while True:
            kept.put(f"part {index}", {"value": value + index})
            index += 1
    while kept.get("part 3") is None:
        pass
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    index = 0
    while (found := Checkpoint(tmp_path / "file").get(f"part {index}")) is not None:
        assert found["value"].equal(value + index)
        index += 1
    assert index > 3


def test_stages_of_the_work_are_told_apart(tmp_path: Path) -> None:
    kept = Checkpoint(tmp_path / "file")
    kept.begin({"seed": "0"})
    kept.begin({"model": "walk"}, "fold 1")
    kept.begin({"model": "chain"}, "fold 2")
    again = Checkpoint(tmp_path / "file")
    again.begin({"seed": "0"})
    again.begin({"model": "walk"}, "fold 1")
    with pytest.raises(ValueError, match="differs in: model;"):
        again.begin({"model": "walk"}, "fold 2")
