# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pyro
import pyro.distributions as dist
import pytest
import torch
from example_models import Unsampled
from torch import Tensor

from pyro_ksd import ksd_check, repair
from pyro_ksd.checks.check_setup import model_and_views, set_up_check
from pyro_ksd.edits.neighborhoods import BeforeEnd, zs
from pyro_ksd.examples import random_walk
from pyro_ksd.models import MarkovSequence, with_sampler
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
    torch.testing.assert_close(setup.impossible.log_joint, model.log_joint(WALKS))
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
    torch.testing.assert_close(setup.impossible.log_joint, expected, check_dtype=False)


def test_edits_before_the_end_make_a_model_with_an_end() -> None:
    data = Sequences.of(["ab.", "ba.", "aab.", "b.", "a."])
    setup = model_and_views(random_walk(3), data, "content-1", BeforeEnd(zs()), None)
    assert setup.model.ends == tuple(data.encode("."))


def test_an_end_that_nobody_names_is_refused() -> None:
    with pytest.raises(ValueError, match="pass end='b'"):
        model_and_views(tosses, Sequences.of(["aab", "ab", "aaab", "ab", "aab"]), None, None, None)
    with pytest.raises(ValueError, match="pass end='b'"):
        repair(tosses, ["aab", "ab", "aaab", "ab", "aab"])


def drawn_for(model: Any, data: Sequences) -> Sequences | None:
    return model_and_views(model, data, "content-1", None, None).drawn


@pytest.mark.parametrize(("size", "drawn"), [(3, 100), (20, 200), (99, 990), (150, 1000)])
def test_some_sequences_are_drawn_from_the_model(size: int, drawn: int) -> None:
    data = Sequences.of([["vwxyz"[code] for code in row] for row in random_walk(5).draw(size).to_lists()], "vwxyz")
    found = drawn_for(random_walk(5), data)
    assert found is not None
    assert len(found) == drawn
    assert found.alphabet == data.alphabet
    again = drawn_for(random_walk(5), data)
    assert again is not None
    assert found.to_lists() == again.to_lists()


def test_the_draws_are_others_than_those_of_the_bootstrap() -> None:
    made = []

    def watched(num_sequences: int, generator: torch.Generator) -> Sequences:
        made.append(random_walk(5).draw(num_sequences, generator))
        return made[-1]

    ksd_check(
        with_sampler(Unsampled(random_walk(5)), watched),
        WALKS,
        views="content-1",
        num_bootstrap=4,
        seed=3,
        progress=False,
    )
    to_compare, for_the_null, *replicates = made
    assert len(to_compare) == 200
    assert len(for_the_null) == 80
    first = [drawn.to_lists()[:5] for drawn in made]
    assert replicates
    assert all(first.count(own) == 1 for own in first)


class Costly(MarkovSequence):
    """A chain that takes long to sample, as it says."""

    @property
    def is_costly(self) -> bool:
        return True


def test_nothing_is_drawn_where_the_model_cannot_or_takes_too_long() -> None:
    assert drawn_for(Unsampled(random_walk(5)), WALKS) is None
    costly = Costly.from_transitions(torch.full((5,), 0.2), torch.full((5, 5), 0.2), 0.2)
    assert costly.can_draw
    assert drawn_for(costly, WALKS) is None
    assert set_up_check(random_walk(5), WALKS, (), "content-1", None, None, draws=False).drawn is None


def failing(num_sequences: int, generator: torch.Generator) -> Sequences:
    raise ValueError("the machine is broken")


def disagreeing(num_sequences: int, generator: torch.Generator) -> Sequences:
    return Sequences.of([[]] * num_sequences, 5)


def test_failed_draws_are_told() -> None:
    model = Unsampled(random_walk(5))
    options: dict[str, Any] = {"bootstrap": "wild", "num_bootstrap": 19, "progress": False}
    with pytest.warns(UserWarning, match="not compared with draws from the model, which failed: the machine is broken"):
        check = ksd_check(with_sampler(model, failing), WALKS, **options)
    assert "ksd_draws" not in check.children
    expected = ksd_check(model, WALKS, **options)
    assert float(check["ksd"]["p_value_overall"]) == float(expected["ksd"]["p_value_overall"])
    with pytest.raises(ValueError, match="the model calls 200 of 200 sequences impossible that were drawn"):
        ksd_check(with_sampler(model, disagreeing), WALKS, **options)
