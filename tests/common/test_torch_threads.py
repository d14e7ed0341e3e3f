# SPDX-License-Identifier: Apache-2.0
"""The number of torch's threads: one within a check's own work, the user's everywhere else."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import torch
from example_models import walk
from torch import Tensor

from pyro_ksd.common.torch_threads import chosen_threads, chosen_torch_threads, one_torch_thread
from pyro_ksd.edits.splices import Edits
from pyro_ksd.fit_tests.absolute import goodness_of_fit
from pyro_ksd.fit_tests.localization import localize
from pyro_ksd.kernels import EmbeddingKernel
from pyro_ksd.models import SequenceModel
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.operators import ZanellaOperator
from pyro_ksd.stein.views import View


@pytest.fixture(autouse=True)
def three_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    assert torch.get_num_threads() == 3
    torch.set_num_threads(before)


def test_blocks_within_each_other() -> None:
    assert chosen_threads() == 3
    with chosen_torch_threads():
        assert torch.get_num_threads() == 3
    with one_torch_thread():
        with one_torch_thread():
            assert torch.get_num_threads() == 1
            with chosen_torch_threads():
                assert torch.get_num_threads() == chosen_threads() == 3
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 1
        assert chosen_threads() == 3


def test_an_error_gives_the_number_back() -> None:
    with one_torch_thread():
        with pytest.raises(ValueError, match="inner"), chosen_torch_threads():
            raise ValueError("inner")
        assert torch.get_num_threads() == 1
    with pytest.raises(ValueError, match="outer"), one_torch_thread():
        raise ValueError("outer")
    assert torch.get_num_threads() == 3


def test_a_thread_that_begins_within_a_block_has_the_number_of_the_user() -> None:
    begun, ended = threading.Event(), threading.Event()
    seen: list[int] = []

    def other() -> None:
        with one_torch_thread():
            begun.set()
            ended.wait(10)
            seen.append(torch.get_num_threads())
            with chosen_torch_threads():
                seen.append(torch.get_num_threads())
        seen.append(torch.get_num_threads())

    thread = threading.Thread(target=other)
    with one_torch_thread():
        thread.start()
        assert begun.wait(10)
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == chosen_threads() == 3  # though the other one is still at work
    ended.set()
    thread.join(10)
    assert seen == [1, 3, 3]


def test_what_users_wrote_has_their_number() -> None:
    seen: list[int] = []

    class Scored(SequenceModel):
        alphabet_size = 3

        def log_joint(self, sequences: Sequences) -> Tensor:
            seen.append(torch.get_num_threads())
            return walk().log_joint(sequences)

    def lengths(sequences: Sequences) -> Tensor:
        seen.append(torch.get_num_threads())
        return sequences.lengths[:, None].double()

    def weight(log_ratio: Tensor) -> Tensor:
        own.append(torch.get_num_threads())
        return log_ratio.sigmoid()

    own: list[int] = []
    view = View("lengths", ZanellaOperator(balancing=weight), EmbeddingKernel(lengths))
    own.clear()  # the function was tried
    data = walk(hold=0.5).draw(10, torch.Generator().manual_seed(0))
    localize(goodness_of_fit(Scored(), data, [view], bootstrap="wild", num_bootstrap=5))
    assert len(seen) > 4
    assert set(seen) == {3}
    assert 1 in own


def test_quick_models_have_one_thread() -> None:
    seen: list[int] = []

    class Quick(SequenceModel):
        alphabet_size = 3

        def log_joint(self, sequences: Sequences) -> Tensor:
            return walk().log_joint(sequences)

        def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
            seen.append(torch.get_num_threads())
            return walk().log_ratio(sequences, edits)

    data = walk(hold=0.5).draw(10, torch.Generator().manual_seed(0))
    view = View("lengths", ZanellaOperator(), EmbeddingKernel(lambda s: s.lengths[:, None].double()))
    goodness_of_fit(Quick(), data, [view], bootstrap="wild", num_bootstrap=5)
    assert seen
    assert 1 in seen
