# SPDX-License-Identifier: Apache-2.0
"""The one call: what it reports, refuses and shows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyro
import pyro.distributions as dist
import pytest
import torch
import xarray as xr
from counting_objects import CountingNetwork, CountingObject
from example_models import Unsampled, walk
from pyro import poutine

from benchmarks.true_models import field, lengths_between
from pyro_ksd import AutoregressiveModel, MarkovSequence, Sequences, View, ksd_check, ksd_compare, verdict
from pyro_ksd.edits import Substitutions
from pyro_ksd.examples import random_walk
from pyro_ksd.fit_tests.lookahead import missing_rows
from pyro_ksd.kernels import EmbeddingKernel, HammingKernel
from pyro_ksd.stein.operators import ZanellaOperator
from pyro_ksd.stein.views import default_views

LOGITS = torch.tensor([0.0, 0.0, -torch.inf])

DATA = walk(hold=0.5).draw(12, torch.Generator().manual_seed(0))


def test_sequences_that_the_model_cannot_have_made_are_reported_and_the_others_checked() -> None:
    whole = Sequences.of([[0, 1], [], *DATA.to_lists(), []], 5)
    message = (
        r"probability zero to 2 of 15 sequences: sequence 1, \[\]; sequence 14, \[\]. It cannot have made them; the"
    )
    with pytest.warns(UserWarning, match=message):
        check = ksd_check(walk(), whole, num_bootstrap=20, progress=False)
    others = ksd_check(walk(), Sequences.of([[0, 1], *DATA.to_lists()], 5), num_bootstrap=20, progress=False)
    np.testing.assert_allclose(check["ksd"]["statistic"], others["ksd"]["statistic"], rtol=1e-12)
    assert check["ksd"]["sequence"].values.tolist() == [0, *range(2, 14)]
    assert check["ksd_impossible"]["sequence"].values.tolist() == [1, 14]
    assert check["ksd_edit"]["sequence_index"].isin([0, *range(2, 14)]).all()
    assert check["ksd_data"].sizes["sequence"] == 15
    assert verdict(check).startswith(
        "the model does not fit (p = 0): 2 of the 15 sequences are impossible under the model (index 1, 14); the "
    )
    assert float(check["ksd"]["p_value_overall"]) == 0.0
    assert check["ksd"].attrs["kind_overall"] == "impossible"
    assert check["ksd"].attrs["kind"] == others["ksd"].attrs["kind"] == others["ksd"].attrs["kind_overall"]
    assert float(check["ksd"]["p_value_possible"]) == float(others["ksd"]["p_value_overall"]) > 0
    assert "p_value_possible" not in others["ksd"]
    with pytest.raises(ValueError, match="and too few others are left to check: widen the model"):
        ksd_check(walk(), Sequences.of([[], [0], []], 5), progress=False)


@pytest.mark.filterwarnings("ignore:the view.s. content-3, skip cannot be used")
def test_a_program_names_the_site_of_an_impossible_sequence() -> None:
    def never_two(sequences: torch.Tensor, lengths: torch.Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            for t in range(sequences.shape[1]):
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"x_{t}", dist.Categorical(logits=LOGITS), obs=sequences[:, t])
            pyro.sample("length", dist.Poisson(3.0), obs=lengths.float())

    data = Sequences.of([[0, 1], [1, 2, 0], [1], [0, 0, 1]], 3)
    with pytest.warns(UserWarning, match=r"sequence 1, \[1, 2, 0\], at site x_1. It cannot have made them"):
        check = ksd_check(never_two, data, num_bootstrap=20, progress=False)
    assert check["ksd_impossible"]["site"].values.tolist() == ["x_1"]
    assert "1 of the 4 sequences is impossible under the model (index 1 at site x_1); the others" in verdict(check)


def share(check: xr.DataTree) -> str:
    """What a verdict says of the share of sequences that do not come from the model."""
    least = float(check["ksd"]["foreign_share_overall"])
    words = f"; at least {100 * least:.3g} % of the sequences do not come from the model (a lower bound)"
    return words if least >= 0.01 else ""


def test_own_features_have_a_direction() -> None:
    def rests(x: Sequences) -> torch.Tensor:
        inside = torch.arange(1, x.tokens.shape[1]) < x.lengths[:, None]
        return ((x.tokens[:, 1:] == x.tokens[:, :-1]) & inside).sum(1, keepdim=True).double()

    own = View("symbols that stay", ZanellaOperator(), EmbeddingKernel(rests))
    holding = random_walk(5, hold=0.5).draw(40, torch.Generator().manual_seed(0))
    check = ksd_check(random_walk(5), holding, views=own, num_bootstrap=99, progress=False)
    words = "the model does not fit (p = 0.010): 'symbols that stay' is too"
    assert verdict(check) == f"{words} small under the model{share(check)}"
    moving = random_walk(5).draw(40, torch.Generator().manual_seed(0))
    check = ksd_check(random_walk(5, hold=0.5), moving, views=own, num_bootstrap=99, progress=False)
    assert verdict(check) == f"{words} large under the model{share(check)}"


def test_features_that_are_not_of_a_sequence_alone_are_refused() -> None:
    view = View("mine", ZanellaOperator(), EmbeddingKernel(lambda x: (x.tokens == 0).sum(1, keepdim=True).double()))
    message = "view 'mine': function: a feature of a sequence changes with the padding after its end"
    for views in ([view], ["length", view]):
        with pytest.raises(ValueError, match=message):
            ksd_check(walk(), DATA, views=views, num_bootstrap=20, progress=False)
    with pytest.raises(ValueError, match=message):
        ksd_compare({"a": walk(), "b": walk()}, DATA, views=[view], progress=False)


@pytest.mark.parametrize("bootstrap", ["wild", "parametric"])
def test_features_that_never_change_are_warned_of(bootstrap: Any) -> None:
    operator = ZanellaOperator()
    constant = View("mine", operator, EmbeddingKernel(lambda x: torch.ones(len(x), 1)))
    changing = View("other", operator, EmbeddingKernel(lambda x: x.lengths[:, None].double()))
    with pytest.warns(UserWarning, match="view 'mine': its features never change where a sequence is edited"):
        check = ksd_check(
            walk(), DATA, views=[changing, constant], bootstrap=bootstrap, num_bootstrap=20, progress=False
        )
    assert float(check["ksd"]["p_value"].sel(view="mine")) == 1.0
    with pytest.warns(UserWarning, match="view 'mine': its features never change"):
        ksd_compare({"a": walk(), "b": walk()}, DATA, views=[changing, constant], progress=False)


def test_kernels_without_features_are_localized_too() -> None:
    views = [View("Hamming", ZanellaOperator(), HammingKernel())]
    check = ksd_check(walk(), DATA, views=views, num_bootstrap=20, progress=False)
    ksd = check["ksd"].to_dataset()
    np.testing.assert_allclose(ksd["attribution"].sum(["shown", "position"]), ksd["statistic"], rtol=1e-10)
    assert check["ksd_ngram"].sizes["ngram"] == 0
    assert np.isnan(check["ksd_null"]["extreme"]).all()
    assert "the model gets whole sequences wrong" in verdict(check)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"level": 1.5}, "level: expected a number between 0 and 1, such as 0.05, found 1.5"),
        (
            {"views": ["content"]},
            "views: expected names out of ['composition', 'content-1', 'content-2', 'content-3', 'end', 'ends', "
            "'length', 'mirror', 'position', 'repeats', 'skip', 'start', 'surprise'], a kind with a number, such as ",
        ),
        ({"views": default_views(), "balancing": "mpf"}, "neighborhood= and balancing= belong to the default views"),
    ],
)
def test_refuses(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011
        ksd_check(walk(), DATA, progress=False, **arguments)
    assert message in str(error.value)


@pytest.mark.parametrize("impossible", [False, True])
@pytest.mark.filterwarnings("ignore:.* probability zero")
def test_p_values_alone_are_the_same(impossible: bool) -> None:
    data = Sequences.of([[0, 1], [], *DATA.to_lists()], 5) if impossible else DATA
    whole = ksd_check(walk(), data, num_bootstrap=20, progress=False)
    alone = ksd_check(walk(), data, num_bootstrap=20, progress=False, localize=False)
    names = ["statistic", "p_value", "p_value_overall", "weight", "meaning", *["p_value_possible"] * impossible]
    assert set(alone["ksd"].data_vars) == set(names)
    groups = {"ksd", "ksd_null", "ksd_data", "observed_data", *["ksd_impossible"] * impossible}
    assert set(alone.children) == groups
    for group in groups - {"observed_data"}:
        for name, values in alone[group].data_vars.items():
            np.testing.assert_array_equal(values.values, whole[group][name].values)
    assert alone["ksd"].attrs["kind_overall"] == whole["ksd"].attrs["kind_overall"]
    assert verdict(alone).split(":")[0] == verdict(whole).split(":")[0]
    assert "seconds_localization" not in alone["ksd"].attrs
    assert all(view in str(alone) for view in alone["ksd"]["view"].values)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tolerance": 0.1}, "localize: expected True beside tolerance=, found False"),
        ({"attribution": True, "gram": True}, "localize: expected True beside attribution=, gram=, found False"),
        ({"replicates": True}, "localize: expected True beside replicates=, found False"),
        ({"posterior": {}}, "localize: expected True beside posterior=, found False"),
    ],
)
def test_what_needs_places_is_refused_without_them(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ksd_check(walk(), DATA, progress=False, localize=False, **arguments)


def test_progress_is_shown_unless_switched_off(terminal: pytest.CaptureFixture[str]) -> None:
    ksd_check(walk(), DATA, num_bootstrap=2)
    assert "parametric bootstrap: 100%" in terminal.readouterr().err
    ksd_check(walk(), DATA, num_bootstrap=2, progress=False)
    assert terminal.readouterr().err == ""


# How often the model is asked


@pytest.mark.parametrize("bootstrap", ["wild", "parametric"])
def test_the_log_joint_of_the_data_is_computed_once(bootstrap: Any) -> None:
    own = CountingObject(walk())
    sampler = walk().draw if bootstrap == "parametric" else None
    ksd_check(own, DATA, bootstrap=bootstrap, sampler=sampler, num_bootstrap=5, progress=False)
    assert own.asked.count(DATA.to_lists()) == 1
    # The others are the replicates, all at once; before them come a few sequences that show a length distribution.
    assert sum(len(asked) == 5 * len(DATA) for asked in own.asked) == (0 if bootstrap == "wild" else 1)


def test_the_log_joint_of_the_possible_data_is_not_computed_again() -> None:
    own = CountingObject(walk())
    whole = Sequences.of([[], *DATA.to_lists()], 5)
    with pytest.warns(UserWarning, match="probability zero to 1 of 13 sequences"):
        ksd_check(own, whole, bootstrap="wild", num_bootstrap=5, progress=False)
    assert own.asked.count(whole.to_lists()) == 1
    assert own.asked.count(DATA.to_lists()) == 0


CALLS_BEFORE = 18
"""So often the network was called at commit 08d4649, where each kernel found the edits once more."""

DRAWS, TAILS, AHEAD, REPLICATES = 24, 3, 3, 48
"""Further calls since. 1,000 sequences are drawn in two rounds of at most 12 symbols, once for the length distribution,
which also needs the edits of their last symbols, and once to be shown beside the data and to be counted in. 2,000 are
drawn in four rounds as replicated data. Each view with a p-value of at most 0.2 looks at edits of the data and at the
edits of these: the candidates, and the log-joints of both."""


@pytest.mark.parametrize("views", [None, "content-2", "length"])
def test_a_network_is_called_no_more_often_than_needed(views: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    def counted(*arguments: Any) -> Any:
        nonlocal looks
        looks += 1
        return missing_rows(*arguments)

    monkeypatch.setattr("pyro_ksd.fit_tests.absolute.missing_rows", counted)
    network = CountingNetwork()
    model = AutoregressiveModel(network, prompt=[4], end=2, max_length=12)
    data = model.draw(30, torch.Generator().manual_seed(0))
    network.calls = 0
    check = ksd_check(model, data, views=views, bootstrap="wild", num_bootstrap=20, progress=False)
    length = 0 if views == "content-2" else DRAWS + TAILS
    assert 0 < network.calls <= CALLS_BEFORE / 2 + length + AHEAD * looks + DRAWS + REPLICATES
    assert looks <= len(check["ksd"]["view"])


# Objects that are not of the base class


@pytest.mark.parametrize("bootstrap", ["wild", "parametric"])
def test_an_object_with_the_methods_of_a_model_will_do(bootstrap: Any) -> None:
    options = {"bootstrap": bootstrap, "num_bootstrap": 20, "progress": False}
    lists = [x for x in DATA.to_lists() if 4 not in x]  # codes of the model's symbols, one of which is missing
    assert len(lists) > 3
    found = ksd_check(CountingObject(walk()), lists, sampler=walk().draw, **options)
    expected = ksd_check(walk(), Sequences.of(lists, 5), **options)
    for group, name in (("ksd", "statistic"), ("ksd", "p_value"), ("ksd_null", "ksd")):
        np.testing.assert_allclose(found[group][name], expected[group][name], rtol=1e-9, atol=1e-12)
    assert verdict(found) == verdict(expected)


def test_an_object_that_draws_needs_no_sampler() -> None:
    class Drawing(CountingObject):
        def draw(self, num_sequences: int, generator: torch.Generator | None = None) -> Sequences:
            return walk().draw(num_sequences, generator)

    found = ksd_check(Drawing(walk()), DATA, num_bootstrap=5, progress=False)
    assert found["ksd"].attrs["kind"] == "parametric"


def test_an_object_that_cannot_draw_is_called_by_its_own_name() -> None:
    with pytest.raises(
        ValueError, match=r"expected a model with a draw\(\) method .*, found CountingObject without one"
    ):
        ksd_check(CountingObject(walk()), DATA, bootstrap="parametric", progress=False)


def test_a_refit_gets_the_very_object_of_the_user() -> None:
    mine = CountingObject(walk())
    seen: list[object] = []

    def refit(model: object, sequences: Sequences) -> object:
        seen.append(model)
        return mine

    ksd_check(mine, DATA, refit=refit, sampler=walk().draw, num_bootstrap=3, progress=False)
    assert len(seen) == 4
    assert all(model is mine for model in seen)


def test_the_level_counts_in_the_verdict_and_in_the_bounds() -> None:
    options: dict[str, Any] = {"views": "content-2", "num_bootstrap": 99, "progress": False}
    data = walk(hold=0.5).draw(60, torch.Generator().manual_seed(0))
    strict, usual, lax = (ksd_check(walk(), data, level=level, **options) for level in (0.001, 0.05, 0.5))
    assert [check["ksd"].attrs["level"] for check in (strict, usual, lax)] == [0.001, 0.05, 0.5]
    assert "may fit" in verdict(strict)
    assert "does not fit" in verdict(usual)
    shares = [float(check["ksd"]["foreign_share_overall"]) for check in (strict, usual, lax)]
    assert shares[0] == 0 < shares[1] < shares[2]


def stops(sequences: torch.Tensor, lengths: torch.Tensor) -> None:
    """Two symbols, and a stop with the probability 0.1."""
    with pyro.plate("sequences", len(lengths)):
        for t in range(sequences.shape[1]):
            with poutine.mask(mask=t < lengths):
                pyro.sample(f"x_{t}", dist.Categorical(torch.ones(2) / 2), obs=sequences[:, t])
                pyro.sample(f"stop_{t}", dist.Bernoulli(0.1), obs=(lengths == t + 1).float())


def energy(sequences: torch.Tensor, lengths: torch.Tensor) -> None:
    """Equal neighbors attract each other, and each length is 0.9 times as probable as the one before."""
    inside = torch.arange(1, sequences.shape[1]) < lengths[:, None]
    equal = ((sequences[:, 1:] == sequences[:, :-1]) & inside).sum(1)
    empty = torch.where(lengths > 0, 0.0, -torch.inf)
    with pyro.plate("sequences", len(lengths)):
        pyro.factor("energy", 0.5 * equal - 1.08 * lengths + empty)


def cut_at(length: int, program: Any, count: int = 100) -> Sequences:
    """Sequences of a program, cut at a length."""
    coin = torch.ones(2) / 2
    moves = torch.tensor([[0.5, 0.0], [0.0, 0.5]]).exp() if program is energy else torch.ones(2, 2)
    stop = 1 - (math.exp(0.5) + 1) * math.exp(-1.08) if program is energy else 0.1
    chain = MarkovSequence.from_transitions(coin, moves / moves.sum(1, keepdim=True), stop=stop)
    whole = chain.draw(count, torch.Generator().manual_seed(0))
    return Sequences(whole.tokens[:, :length], whole.lengths.clamp(max=length), 2)


@pytest.mark.parametrize("program", [stops, energy])
def test_data_that_are_cut_at_a_length_do_not_fit_a_program_that_cannot_be_sampled(program: Any) -> None:
    options: Any = {"views": "length", "num_bootstrap": 99, "progress": False}
    cut = ksd_check(program, cut_at(8, program), **options)
    assert cut["ksd"].attrs["kind"] == "wild"
    assert float(cut["ksd"]["p_value_overall"]) == 0.01
    if program is stops:
        expected = cut["ksd_length"]["expected"].values
        np.testing.assert_allclose(expected[1:20], 0.1 * 0.9 ** np.arange(19), rtol=1e-4)
        assert "lengths are too long under the model (mean about 10, in the data 5." in verdict(cut)
    one_length = ksd_check(program, cut_at(8, program)[cut_at(8, program).lengths == 8], **options)
    assert float(one_length["ksd"]["p_value_overall"]) == 0.01
    assert float(ksd_check(program, cut_at(1000, program), **options)["ksd"]["p_value_overall"]) > 0.1


def test_a_model_with_a_last_length_fits_its_own_sequences() -> None:
    model = field(12, per_symbol=-1.3)
    data = model.draw(100, torch.Generator().manual_seed(0))
    assert int((data.lengths == 12).sum()) > 5
    check = ksd_check(Unsampled(model), data, views="length", num_bootstrap=99, progress=False)
    assert float(check["ksd"]["p_value_overall"]) > 0.1
    assert check["ksd_length"].sizes["length"] == 13


@pytest.mark.parametrize(("fixed", "kind"), [(False, "wild"), (True, "parametric")])
def test_with_substitutions_alone_the_lengths_are_given(fixed: bool, kind: str) -> None:
    """Lengths that are wrong do not matter, nor are they the model's in the null draws."""
    model = lengths_between(10, 10) if fixed else random_walk(4, mean_length=5.0)
    data = (model if fixed else random_walk(4, mean_length=40.0)).draw(60, torch.Generator().manual_seed(0))
    check = ksd_check(model, data, neighborhood=Substitutions(), num_bootstrap=99, progress=False)
    assert check["ksd"].attrs["edits"] == "substitution"
    assert check["ksd"].attrs["kind"] == kind
    assert "length" not in check["ksd"]["view"].values
    assert float(check["ksd"]["p_value_overall"]) > 0.05
    asked = {"neighborhood": Substitutions(), "bootstrap": "parametric", "num_bootstrap": 19, "progress": False}
    assert ksd_check(model, data, **asked)["ksd"].attrs["kind"] == "parametric"
