# SPDX-License-Identifier: Apache-2.0
"""Repairs of models: the right factors with the right names, and a model that fits afterwards."""

from __future__ import annotations

import math
from typing import Any

import pyro
import pyro.distributions as dist
import pytest
import torch
from torch import Tensor

from pyro_ksd import MarkovSequence, Sequences, ksd_check, repair
from pyro_ksd.checks import model_repair
from pyro_ksd.checks.model_repair import Factor, Repair
from pyro_ksd.edits import Count, zs
from pyro_ksd.models import TiltedModel

COIN = torch.tensor([0.5, 0.5])
FAIR = MarkovSequence.from_transitions(COIN, COIN.expand(2, 2), stop=0.1)
STICKY = MarkovSequence.from_transitions(COIN, torch.tensor([[0.8, 0.2], [0.5, 0.5]]), stop=0.1)
AGAIN = "check the result with ksd_check(result.model, new_data)"


def tosses(model: MarkovSequence, size: int = 400, seed: int = 1) -> Sequences:
    return model.draw(size, torch.Generator().manual_seed(seed)).over("HT")


def near(found: Factor, truth: float) -> bool:
    error = (math.log(found.high) - math.log(found.low)) / 4
    return abs(math.log(found.factor) - math.log(truth)) < 4 * error


def test_factors_of_a_chain_are_its_ratios() -> None:
    found = repair(FAIR, tosses(STICKY), views="content-2")
    factors = {factor.name: factor for factor in found.factors}
    assert set(factors) == {"HH", "HT"}
    assert near(factors["HH"], 0.8 / 0.5)
    assert near(factors["HT"], 0.2 / 0.5)
    assert factors["HH"].count == Count("ngram", (0, 0))
    assert found.is_enough


def test_the_repaired_model_fits_other_data() -> None:
    found = repair(FAIR, tosses(STICKY), views="content-2")
    other = tosses(STICKY, 200, seed=2)
    before = ksd_check(FAIR, other, views="content-2", bootstrap="wild", num_bootstrap=199, progress=False)
    after = ksd_check(found.model, other, views="content-2", bootstrap="wild", num_bootstrap=199, progress=False)
    p_values = [float(check["ksd"].p_value.sel(view="content-2")) for check in (before, after)]
    assert p_values[0] == 0.005
    assert p_values[1] > 0.01


def test_a_true_model_is_left_as_it_is() -> None:
    found = repair(FAIR, tosses(FAIR))
    assert found.factors == ()
    assert found.model is FAIR
    assert str(found) == f"no factors; nothing else of this kind stands out; {AGAIN}"


def test_first_and_last_symbols_and_the_length() -> None:
    late = torch.tensor([0.02, 0.3])
    other = MarkovSequence.from_transitions(torch.tensor([0.8, 0.2]), COIN.expand(2, 2), stop=late)
    names = {factor.name for factor in repair(FAIR, tosses(other, 600), views=["start", "end", "length"]).factors}
    assert names & {"^H", "^T"}
    assert names & {"H$", "T$"}


def test_symbols_with_names() -> None:
    data = Sequences.of([["up", "down", "up"]] * 30 + [["down"]] * 30, alphabet=["up", "down"])
    names = {factor.name for factor in repair(FAIR, data).factors}
    assert names
    assert names <= {"up", "down", "up down", "down up", "^up", "^down", "up$", "down$", "length"}


def test_a_program_without_lengths_is_repaired_given_them() -> None:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(sequences)):
            for position in range(sequences.shape[1]):
                with pyro.poutine.mask(mask=position < lengths):
                    pyro.sample(f"x_{position}", dist.Bernoulli(0.5), obs=sequences[:, position].double())

    data = tosses(STICKY, 100)
    with pytest.warns(UserWarning, match="length"):
        found = repair(program, data)
    assert isinstance(found.model, TiltedModel)
    assert "length" not in {factor.name for factor in found.factors}


def test_large_data_are_thinned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_repair, "_ENOUGH", 5000)
    data = Sequences.of(sorted(tosses(FAIR, 400).to_lists()), alphabet="HT")  # type: ignore[type-var]
    some = model_repair._thinned(data, zs())
    assert 50 < len(some) < 200
    heads = [float((one.tokens[:, 0] == 0).double().mean()) for one in (data, some)]
    assert abs(heads[0] - heads[1]) < 0.2  # in the order of the data all would begin with heads
    assert len(model_repair._thinned(data[:20], zs())) == 20
    assert "HT" in {factor.name for factor in repair(FAIR, tosses(STICKY), views="content-2").factors}


def test_words() -> None:
    factor = Factor("ab", 1.4, 1.2, 1.63, Count("ngram", (0, 1)))
    assert str(factor) == "ab × 1.40 (1.20 to 1.63)"
    enough = Repair((factor, factor), FAIR, 2.0, 3.0)
    assert str(enough) == (
        f"ab × 1.40 (1.20 to 1.63); ab × 1.40 (1.20 to 1.63); nothing else of this kind stands out; {AGAIN}"
    )
    assert str(Repair((factor,), FAIR, 4.0, 3.0)) == f"ab × 1.40 (1.20 to 1.63); these are not enough; {AGAIN}"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"views": []}, "views: expected names out of"),
        ({"views": "content"}, "found 'content'"),
        ({"views": [3]}, "found 3"),
        ({"views": "content-50"}, "at least 5 sequences"),
        ({"level": 5}, "level: expected a number between 0 and 1"),
        ({"neighborhood": "all"}, "neighborhood: expected"),
        ({"end": "x"}, "end: expected the symbol"),
    ],
)
def test_wrong_arguments(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        repair(FAIR, tosses(FAIR, 20), **options)


def test_impossible_data_cannot_be_repaired() -> None:
    always = MarkovSequence.from_transitions(COIN, torch.eye(2), stop=0.1)
    with pytest.raises(ValueError, match="widen the model"):
        repair(always, ["HH", "HT", "TT"])


def test_a_handful_of_sequences_must_contain_what_gets_a_factor() -> None:
    nothing = "expected something that at least 5 sequences contain, found nothing among the"
    assert repair(FAIR, Sequences.of(["H"] * 5, "HT"), views="content-1").factors == ()
    with pytest.raises(ValueError, match=f"{nothing} 4 sequences"):
        repair(FAIR, Sequences.of(["H"] * 4, "HT"), views="content-1")
    with pytest.raises(ValueError, match=f"{nothing} 6 sequences"):  # many pairs of one sequence are no handful
        repair(FAIR, Sequences.of(["H" * 9, *"TTTTT"], "HT"), views="content-2")


def test_a_lower_level_needs_larger_scores() -> None:
    thresholds = [repair(FAIR, tosses(FAIR, 50), level=level).threshold for level in (0.5, 0.05, 0.005)]
    assert thresholds == sorted(set(thresholds))


def test_large_data_are_thinned_to_what_can_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    data = Sequences.of(["HTH"] * 10, "HT")
    each = zs().edit_bound(3, 2)
    for most, expected in ((10 * each, 10), (4 * each, 4), (3.5 * each, 4), (1, 1)):
        monkeypatch.setattr(model_repair, "_ENOUGH", most)
        assert len(model_repair._thinned(data, zs())) == expected
