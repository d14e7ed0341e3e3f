# SPDX-License-Identifier: Apache-2.0
"""The simulated checks are those that a user would run."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pyro
import pyro.distributions as dist
import pytest
import torch
from scipy.stats import binom
from torch import Tensor

from pyro_ksd import default_views, ksd_check, power
from pyro_ksd.checks import power_study
from pyro_ksd.examples import random_walk
from pyro_ksd.fit_tests.combination import harmonic_p
from pyro_ksd.models import LinearChainMRF, MarkovSequence, SequenceModel
from pyro_ksd.models.conversion import as_model
from pyro_ksd.sequences.container import Sequences

WALK = random_walk(5)
HOLDING = random_walk(5, hold=0.1)
VIEWS = ["content-1", "content-2", "start"]
QUICK: dict[str, Any] = {"views": VIEWS, "runs": 20, "num_bootstrap": 59, "progress": False}


class Shrinking(SequenceModel):
    """A model that cannot be sampled."""

    alphabet_size = 5

    def log_joint(self, sequences: Sequences) -> Tensor:
        return -3.0 * sequences.lengths


def shares(table: Any, size: int) -> dict[str, float]:
    found: dict[str, float] = table["power"][size].to_dict()
    return found


def held(share: float) -> Callable[[Sequences, torch.Generator], Any]:
    """Stays where it is at the end, in a share of the sequences."""

    def fault(sequences: Sequences, generator: torch.Generator) -> list[list[Any]]:
        chosen = torch.rand(len(sequences), generator=generator) < share
        rows = sequences.to_lists()
        return [[*row, *row[-1:] * 3] if hit else row for row, hit in zip(rows, chosen.tolist(), strict=True)]

    return fault


def moving(sequences: Tensor | None = None, lengths: Tensor | None = None, num_sequences: int | None = None) -> Any:
    """A coin for every symbol and another for the stop."""
    if num_sequences is not None:
        return MarkovSequence.from_transitions(torch.ones(2) / 2, torch.ones(2, 2) / 2, stop=0.2).draw(num_sequences)
    assert sequences is not None
    assert lengths is not None
    with pyro.plate("sequences", len(lengths)):
        for t in range(sequences.shape[1]):
            with pyro.poutine.mask(mask=t < lengths):
                pyro.sample(f"x_{t}", dist.Categorical(torch.ones(2)), obs=sequences[:, t])
                pyro.sample(f"stop_{t}", dist.Bernoulli(0.2), obs=(lengths == t + 1).float())
    return None


def test_power_grows_with_the_size_and_all_sizes_are_ascending() -> None:
    table = power(WALK, HOLDING, [60, 3, 3], **QUICK)
    assert table["power"].columns.tolist() == [3, 60]
    assert table["power"].index.tolist() == [*VIEWS, "overall"]
    assert shares(table, 3)["overall"] < 0.7 < shares(table, 60)["overall"]
    assert shares(table, 60)["start"] < 0.5 < shares(table, 60)["content-2"]
    assert table.attrs["kinds"] == {3: "parametric", 60: "parametric"}


@pytest.mark.parametrize(("views", "needed"), [(None, 399), ("mirror", 19), (["start", "length"], 39)])
def test_too_few_draws_are_warned_of_once(views: Any, needed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(power_study, "_POOL", 1)
    options = {"views": views, "runs": 1, "progress": False}
    with pytest.warns(UserWarning, match=rf"too few for a fault .* take num_bootstrap={needed} or more") as caught:
        power(WALK, HOLDING, [3, 4], num_bootstrap=needed - 1, **options)
    assert len(caught) == 1
    power(WALK, HOLDING, [3, 4], num_bootstrap=needed, **options)


def test_one_seed_one_result() -> None:
    first, again, other = (shares(power(WALK, HOLDING, 20, **QUICK, seed=seed), 20) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_the_bootstrap_is_that_of_the_check() -> None:
    quick = QUICK | {"runs": 2, "num_bootstrap": 19, "views": "content-2"}
    assert power(WALK, HOLDING, [99, 1000], **quick).attrs["kinds"] == {99: "parametric", 1000: "wild"}
    assert power(WALK, HOLDING, 20, bootstrap="wild", **quick).attrs["kinds"] == {20: "wild"}
    assert power(WALK, HOLDING, 120, bootstrap="parametric", **quick).attrs["kinds"] == {120: "parametric"}


@pytest.mark.parametrize("bootstrap", ["parametric", "wild"])
def test_a_simulated_check_finds_the_p_values_of_a_check(bootstrap: Any) -> None:
    """With the whole pool as null draws of one check, everything random is the same."""
    data = HOLDING.draw(12, torch.Generator().manual_seed(3))
    views = power_study.model_and_views(WALK, data, None, None, None).views
    generator = torch.Generator().manual_seed(4)
    checks = power_study._Checks(WALK, views, views, bootstrap, 400, 0.05, generator, progress=False)
    found = checks._p_values(data)
    check = ksd_check(WALK, data, bootstrap=bootstrap, num_bootstrap=400, localize=False, progress=False)["ksd"]
    expected = dict(zip(check["view"].values.tolist(), check["p_value"].values.tolist(), strict=True))
    expected["overall"] = float(check["p_value_overall"])
    assert list(found) == list(expected)
    for name, p in expected.items():  # two independent estimates of one p-value
        assert found[name] == pytest.approx(p, abs=5 * math.sqrt(2 * p * (1 - p) / 400) + 2.5e-3)
    if bootstrap == "parametric":
        assert checks.pools[12].shape == (4_000, len(views))


def test_a_check_sees_a_fault_up_to_the_level() -> None:
    class Checks(power_study._Checks):
        def _p_values(self, data: Sequences) -> dict[str, float]:
            return {"above": 0.0501, "at": 0.05, "below": 0.01, "overall": 0.05}

    views = default_views()
    checks = Checks(WALK, views, views, "auto", 9, 0.05, torch.Generator(), progress=False)
    assert checks.seeing(WALK.draw(5, torch.Generator().manual_seed(0))) == ["at", "below", "overall"]


def test_a_function_gets_sequences_of_the_model_and_damages_them() -> None:
    sizes = []

    def fault(sequences: Sequences, generator: torch.Generator) -> Any:
        assert isinstance(sequences, Sequences)
        assert isinstance(generator, torch.Generator)
        assert WALK.log_joint(sequences).isfinite().all()
        sizes.append(len(sequences))
        return held(1.0)(sequences, generator)

    assert shares(power(WALK, fault, 30, **QUICK), 30)["overall"] == 1.0
    assert sizes == [30] * 20
    assert shares(power(WALK, held(0.0), 30, **QUICK), 30)["overall"] < 0.4


def test_a_function_may_use_the_symbols_of_the_example() -> None:
    def fault(sequences: Sequences, generator: torch.Generator) -> list[str]:
        assert sequences.alphabet == ("H", "T")
        return ["H" * len(row) for row in sequences.to_lists()]

    assert shares(power(moving, fault, 15, example=["HTT", "TH", "H"], **QUICK), 15)["overall"] == 1.0


def test_programs_as_model_and_as_fault() -> None:
    def heads(sequences: Any = None, lengths: Any = None, num_sequences: int | None = None) -> Any:
        if num_sequences is None:
            return moving(sequences, lengths)
        return torch.zeros(num_sequences, 5).long(), torch.full((num_sequences,), 5)

    table = power(moving, heads, 10, example=["HTT", "TH", "H"], **QUICK)
    assert shares(table, 10)["content-1"] == 1.0
    ready = as_model(moving, Sequences.of(["HTT", "TH", "H"]))
    assert shares(power(ready, ready, 10, **QUICK), 10)["overall"] < 0.4


def test_impossible_sequences_are_seen_and_the_others_checked() -> None:
    model = MarkovSequence.from_transitions(torch.tensor([1.0, 0.0]), torch.tensor([[0.5, 0.5], [0.5, 0.5]]), stop=0.3)

    def fault(sequences: Sequences, generator: torch.Generator) -> list[list[int]]:
        rows = sequences.to_lists()
        return [[1, 0], *rows[1:]] if torch.rand((), generator=generator) < 0.5 else rows

    table = power(model, fault, 10, **QUICK | {"runs": 60})
    found = shares(table, 10)
    assert list(found)[-2:] == ["impossible", "overall"]
    assert 0.25 < found["impossible"] < 0.75
    assert found["impossible"] <= found["overall"] < 1
    assert found["content-2"] < 0.3

    def nothing_else(sequences: Sequences, generator: torch.Generator) -> list[list[int]]:
        return [[1, 0]] * len(sequences)

    found = shares(power(model, nothing_else, 10, **QUICK), 10)
    assert found == dict.fromkeys(found, 0.0) | {"impossible": 1.0, "overall": 1.0}


def test_a_view_that_is_left_out_sees_nothing() -> None:
    """Sequences of one length: no edit at the end is possible, so that the length is left out."""
    length = torch.full((4,), -torch.inf)
    length[3] = 0.0
    mrf = LinearChainMRF(torch.zeros(2, 2), length=length)
    fixed = as_model(mrf, Sequences.of(["aba", "bbb"]), sampler=_three_tosses)
    found = shares(power(fixed, held_symbols, 10, **QUICK | {"views": ["content-1", "length"]}), 10)
    assert found["length"] == 0.0
    assert found["content-1"] == 1.0


def _three_tosses(num_sequences: int, generator: torch.Generator) -> Sequences:
    return Sequences.of(torch.randint(2, (num_sequences, 3), generator=generator), 2)


def held_symbols(sequences: Sequences, generator: torch.Generator) -> list[list[int]]:
    return [[0, 0, 0]] * len(sequences)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"n": []}, "n: expected at least one sample size"),
        ({"n": 1}, "n: expected an integer of at least 2, found 1"),
        ({"n": [20, "30"]}, "n: expected an integer of at least 2, found '30'"),
        ({"runs": 0}, "runs: expected an integer of at least 1, found 0"),
        ({"level": 5}, "level: expected a number between 0 and 1"),
        ({"model": moving}, "model: expected a model that states its symbols, found the function moving; .* example="),
        ({"model": Shrinking()}, "model: expected one that can be sampled, found Shrinking, which cannot; .* sampler"),
        ({"fault": random_walk(4)}, "fault: expected a model of the same 5 symbols, found one of 4"),
        ({"fault": lambda sequences: sequences}, r"fault: expected a function of \(sequences, generator\)"),
        ({"fault": 0.1}, r"fault: expected a function of \(sequences, generator\)"),
        ({"fault": lambda x, generator: x[:3]}, "fault: expected 20 sequences over 5 symbols, .* found 3 over 5"),
        ({"fault": lambda x, generator: [[9]] * len(x)}, "found the symbol 9, expected one of the alphabet 0..4"),
        ({"example": Sequences.of([[0, 1]], 5).with_covariates([1])}, "example: expected sequences without covariates"),
    ],
)
def test_mistakes(changed: dict[str, Any], words: str) -> None:
    arguments = {"model": WALK, "fault": HOLDING, "n": 20} | QUICK | changed
    with pytest.raises(ValueError, match=words):
        power(arguments.pop("model"), arguments.pop("fault"), arguments.pop("n"), **arguments)


def band(rate: float, runs: int) -> tuple[float, float]:
    """Where a share of the runs lies with probability 0.999."""
    low, high = binom.interval(0.999, runs, rate)
    return low / runs, high / runs


@pytest.mark.slow
@pytest.mark.parametrize(("size", "runs"), [(20, 1000), (120, 500)])
def test_the_level_under_no_fault(size: int, runs: int) -> None:
    """Views of rare features, such as long runs, may reject more rarely: they take few values, or have few jumps."""
    found = shares(power(WALK, WALK, size, runs=runs, progress=False), size)
    low, high = band(0.05, runs)
    assert all(share <= high for share in found.values()), found
    assert low <= found["overall"], found


@pytest.mark.slow
@pytest.mark.parametrize(("size", "hold"), [(15, 0.02), (110, 0.01)])
def test_the_power_is_that_of_many_checks(size: int, hold: float) -> None:
    """The same shares as in a loop over checks, within 4 standard errors of the difference."""
    runs = 400
    model, wrong = random_walk(5), random_walk(5, hold=hold)
    options: dict[str, Any] = {"num_bootstrap": 399, "progress": False}
    found = shares(power(model, wrong, size, runs=runs, **options), size)
    generator = torch.Generator().manual_seed(5)
    counts = dict.fromkeys(found, 0)
    for seed in range(runs):
        check = ksd_check(model, wrong.draw(size, generator), seed=seed, localize=False, **options)["ksd"]
        for name, p in zip(check["view"].values.tolist(), check["p_value"].values.tolist(), strict=True):
            counts[name] += p <= 0.05
        counts["overall"] += float(check["p_value_overall"]) <= 0.05
    for name, count in counts.items():
        share = (count / runs + found[name]) / 2
        error = math.sqrt(2 * share * (1 - share) / runs) + 0.5 / runs
        assert abs(count / runs - found[name]) <= 4 * error, (name, count / runs, found[name])
    assert 0.2 < found["overall"] < 0.9  # else the test would show nothing


def test_the_weights_of_the_views_and_the_number_of_draws_are_those_of_a_check(monkeypatch: pytest.MonkeyPatch) -> None:
    combined: list[tuple[int, list[float]]] = []

    def noted(observed: Tensor, null: Tensor, weights: Tensor) -> Any:
        combined.append((len(null), weights.tolist()))
        return harmonic_p(observed, null, weights)

    monkeypatch.setattr(power_study, "harmonic_p", noted)
    power(WALK, HOLDING, 4, runs=3, num_bootstrap=399, progress=False)
    assert combined == [(399, [view.weight for view in default_views()])] * 3
