# SPDX-License-Identifier: Apache-2.0
"""Large alphabets are checked by a few edits, chosen whatever the data are."""

from __future__ import annotations

from typing import Any

import pyro
import pyro.distributions as dist
import pytest
import torch
from pyro import poutine
from torch import Tensor

from pyro_ksd import MarkovSequence, ksd_check, ksd_compare
from pyro_ksd.checks import large_alphabets
from pyro_ksd.checks.large_alphabets import affordable
from pyro_ksd.checks.views_argument import chosen_views
from pyro_ksd.edits import BeforeEnd, Substitutions, check_symmetric, zs
from pyro_ksd.edits.weighted_edits import edit_bounds
from pyro_ksd.models.conversion import as_model
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.views import default_views

VIEWS = [view.name for view in default_views()]
SIZE, STOP = 400, 0.15
RANKS = torch.randperm(SIZE, generator=torch.Generator().manual_seed(0))
ZIPF = (1 / (1 + RANKS.double())) / (1 / (1 + RANKS.double())).sum()
WRONG = ZIPF.sqrt() / ZIPF.sqrt().sum()


def program(probs: Tensor) -> Any:
    def independent(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            for t in range(sequences.shape[1]):
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"x_{t}", dist.Categorical(probs), obs=sequences[:, t])
                    stop = dist.Bernoulli(torch.tensor(STOP, dtype=torch.double))
                    pyro.sample(f"stop_{t}", stop, obs=(lengths == t + 1).double())

    return independent


def chain(probs: Tensor) -> MarkovSequence:
    return MarkovSequence.from_transitions(probs, probs.expand(SIZE, SIZE), STOP)


FLAT = torch.rand(400, generator=torch.Generator().manual_seed(0)).double()
FLAT = FLAT / FLAT.sum()


def drawn(count: int, seed: int = 0) -> Sequences:
    return chain(ZIPF).draw(count, torch.Generator().manual_seed(seed))


@pytest.mark.filterwarnings("ignore:left out content", "ignore:the view.s. skip cannot be used")
def test_a_check_of_a_large_alphabet() -> None:
    data = drawn(60)
    for probs, fits in ((ZIPF, True), (WRONG, False)):
        with pytest.warns(UserWarning, match=r"400 symbols make \d{3},\d{3} edits of the 60 sequences.*=zs"):
            check = ksd_check(program(probs), data, num_bootstrap=99, localize=False, progress=False)
        assert check["ksd"]["view"].values.tolist() == [
            name for name in VIEWS if name not in ("content-2", "content-3", "skip")
        ]
        assert (float(check["ksd"]["p_value_overall"]) > 0.05) == fits


@pytest.mark.filterwarnings("ignore:400 symbols make", "ignore:the view.s. skip cannot be used")
def test_runs_that_hardly_ever_recur_are_left_out() -> None:
    with pytest.warns(UserWarning, match="left out content-2 and content-3: with few edits of a large"):
        few = chosen_views(None, None, None, [as_model(program(ZIPF), drawn(5))], drawn(60))
    assert not {"content-2", "content-3"} & {view.name for view in few}
    often = Sequences.of([[0, 1, 2, 0, 1, 2] * 5] * 20, 400)
    views = chosen_views(None, None, None, [as_model(program(ZIPF), drawn(5))], often)
    assert [view.name for view in views] == VIEWS


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:left out content", "ignore:the view.s. skip cannot be used")
@pytest.mark.parametrize("probs", [ZIPF, FLAT], ids=["Zipf", "flat"])
def test_the_level_with_few_edits(probs: Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    """60 data sets of a true model: more than 9 rejections at 0.05 have a probability of 0.001."""
    monkeypatch.setattr(large_alphabets, "_MOST_COMPARED", 0)
    rejected = 0
    for seed in range(60):
        data = chain(probs).draw(40, torch.Generator().manual_seed(seed))
        with pytest.warns(UserWarning, match="400 symbols make"):
            check = ksd_check(chain(probs), data, bootstrap="wild", num_bootstrap=99, progress=False)
        rejected += float(check["ksd"]["p_value_overall"]) <= 0.05
    assert rejected <= 9


def test_what_the_user_states_is_taken() -> None:
    few = zs(locations=1, symbols=3, insertable=[0, 1])
    check = ksd_check(program(ZIPF), drawn(60), neighborhood=few, views="content-1", num_bootstrap=5, progress=False)
    assert check["ksd"].attrs["edits"] == "deletion, insertion, substitution"


def test_when_all_edits_are_taken() -> None:
    models = [as_model(program(ZIPF), drawn(5))]
    around = zs()
    assert affordable(around, models, drawn(5), lengths=True) is around
    small = Sequences.of([[0, 1] * 600] * 20, 128)  # six million edits, but of few symbols
    assert affordable(around, models, small, lengths=True) is around
    assert affordable(around, [chain(ZIPF)], drawn(100), lengths=True) is around  # ratios by a formula


@pytest.mark.filterwarnings("ignore:400 symbols make")
def test_the_few_edits() -> None:
    data = drawn(60)
    models = [as_model(program(ZIPF), data)]
    few = affordable(zs(), models, data, lengths=True)
    assert few.kinds == zs().kinds
    assert int(edit_bounds(few, data).sum()) < int(edit_bounds(zs(), data).sum()) / 4
    shortest = data[data.lengths.argsort()[:3]]
    check_symmetric(few, shortest)
    check_symmetric(few.tail, shortest[:1])  # half a million edits
    assert affordable(Substitutions(), models, data, lengths=False).kinds == {"substitution"}
    assert isinstance(affordable(BeforeEnd(zs()), models, data, lengths=True), BeforeEnd)
    edited = few.edits(Sequences.of([[]], SIZE)).apply(Sequences.of([[]], SIZE))
    assert sorted(edited.tokens[:, 0].tolist()) == sorted(ZIPF.argsort(descending=True)[:64].tolist())


@pytest.mark.parametrize("draws", [False, True])
def test_the_symbols_that_come_and_go_are_those_of_the_model(draws: bool) -> None:
    model: Any = chain(ZIPF) if draws else as_model(program(ZIPF), drawn(5))
    codes = large_alphabets._most_probable(model, drawn(5), 20)
    assert int(RANKS[codes].max()) < (60 if draws else 20)
    best = int(ZIPF.argmax())
    ended = as_model(program(ZIPF), drawn(5), end=best)
    assert best not in large_alphabets._most_probable(ended, drawn(5), 20)


@pytest.mark.filterwarnings("ignore:left out content")
def test_comparisons() -> None:
    with pytest.warns(UserWarning, match="400 symbols make"):
        found = ksd_compare({"true": program(ZIPF), "wrong": program(WRONG)}, drawn(60), progress=False)
    assert found["ksd_compare"]["rank"].sel(view="overall").values.tolist() == [0, 1]
