# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pyro
import pyro.distributions as dist
import pytest
import torch
from torch import Tensor

from pyro_ksd import ksd_check, repair
from pyro_ksd.checks.check_setup import model_and_views
from pyro_ksd.edits.neighborhoods import BeforeEnd, zs
from pyro_ksd.examples import random_walk
from pyro_ksd.models.wrappers.given_lengths import GivenLengths
from pyro_ksd.sequences.container import Sequences

WALKS = random_walk(5).draw(20, torch.Generator().manual_seed(0))


def tosses(sequences: Tensor, lengths: Tensor) -> None:
    """A coin for every symbol, without a distribution of the length."""
    with pyro.plate("sequences", len(lengths)):
        for t in range(sequences.shape[1]):
            with pyro.poutine.mask(mask=t < lengths):
                pyro.sample(f"x_{t}", dist.Categorical(torch.ones(2)), obs=sequences[:, t])


def viewed(check: Any) -> list[str]:
    names: list[str] = check["ksd"]["view"].values.tolist()
    return names


@pytest.mark.parametrize("views", [None, "length", ["start", "content-4"]])
def test_the_views_are_those_of_a_check(views: Any) -> None:
    model = random_walk(5)
    setup = model_and_views(model, WALKS, views, None, None)
    assert setup.model is model
    torch.testing.assert_close(setup.log_joint, model.log_joint(WALKS))
    check = ksd_check(model, WALKS, views=views, num_bootstrap=2, progress=False)
    assert [view.name for view in setup.views] == viewed(check)


@pytest.mark.filterwarnings("ignore:the model gives no probability to lengths")
def test_a_model_without_lengths_is_looked_at_given_the_lengths() -> None:
    data = Sequences.of(["abba", "ba", "ab", "aab", "b"] * 4)
    setup = model_and_views(tosses, data, None, None, None)
    assert isinstance(setup.model, GivenLengths)
    check = ksd_check(tosses, data, num_bootstrap=2, progress=False)
    assert [view.name for view in setup.views] == viewed(check)
    with pytest.raises(ValueError, match="found edits that change the length"):
        model_and_views(tosses, data, None, zs(), None)


@pytest.mark.filterwarnings("ignore:the model gives no probability to lengths")
def test_an_empty_sequence_is_certain_given_its_length() -> None:
    setup = model_and_views(tosses, Sequences.of(["abba", "", "ab"]), None, None, None)
    expected = torch.tensor([4.0, 0.0, 2.0]).double() * torch.tensor(0.5).log()
    torch.testing.assert_close(setup.log_joint, expected, check_dtype=False)


def test_edits_before_the_end_make_a_model_with_an_end() -> None:
    data = Sequences.of(["ab.", "ba.", "aab.", "b.", "a."])
    setup = model_and_views(random_walk(3), data, "content-1", BeforeEnd(zs()), None)
    assert setup.model.ends == tuple(data.encode("."))


def test_an_end_that_nobody_names_is_refused() -> None:
    with pytest.raises(ValueError, match="pass end='b'"):
        model_and_views(tosses, Sequences.of(["aab", "ab", "aaab", "ab", "aab"]), None, None, None)
    with pytest.raises(ValueError, match="pass end='b'"):
        repair(tosses, ["aab", "ab", "aaab", "ab", "aab"])
