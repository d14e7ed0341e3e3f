# SPDX-License-Identifier: Apache-2.0
"""The call that compares models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyro
import pyro.distributions as dist
import pyro_programs as programs
import pytest
import torch
import xarray as xr
from counting_objects import CountingObject
from example_models import Unsampled, walk
from pyro import poutine
from synthetic_comparison import made_up_comparison
from torch import Tensor

from pyro_ksd import AutoregressiveModel, LinearChainMRF, MarkovSequence, Sequences, View, ksd_check
from pyro_ksd.checks.model_comparison import ksd_compare
from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.examples import random_walk
from pyro_ksd.fit_tests.relative import RowSums, relative_fit
from pyro_ksd.kernels import HammingKernel
from pyro_ksd.results.comparison_table import compare_table
from pyro_ksd.stein.assembly import stein_matrices
from pyro_ksd.stein.operators import ZanellaOperator
from pyro_ksd.stein.views import default_views

VIEWS = [view.name for view in default_views() if view.name != "repeats"]

DATA = walk(hold=0.3).draw(40, torch.Generator().manual_seed(0))

WALKS = {f"hold {hold}": walk(hold=hold) for hold in (0.0, 0.3, 0.6)}


def compare(models: Any, data: Any, **arguments: Any) -> xr.Dataset:
    return ksd_compare(models, data, progress=False, **arguments)["ksd_compare"].to_dataset()


def second_order() -> MarkovSequence:
    """A chain on two symbols that likes to say what it said before the last symbol."""
    probs = torch.zeros(3, 3, 3, dtype=torch.double)
    probs[:, :, 2] = 0.1
    probs[..., :2] = 0.45
    for before in range(2):
        probs[before, :2, before], probs[before, :2, 1 - before] = 0.75, 0.15
    probs[2, 2] = torch.tensor([0.5, 0.5, 0.0])
    return MarkovSequence(probs, order=2)


def first_order(data: Sequences) -> MarkovSequence:
    """The chain of order 1 that is fitted to the data."""
    counts = torch.zeros(3, 3, dtype=torch.double)
    for x in data.to_lists():
        for before, here in zip([2, *x], [*x, 2], strict=True):
            counts[before, here] += 1
    return MarkovSequence(counts / counts.sum(-1, keepdim=True))


def test_the_right_order_is_found() -> None:
    right = second_order()
    data = right.draw(200, torch.Generator().manual_seed(3))
    comparison = ksd_compare({"order 1": first_order(data), "order 2": right}, data, progress=False)
    found = comparison["ksd_compare"].to_dataset().sel(model="order 1", model_bis="order 2")
    assert float(found["p_value"].sel(view="overall")) < 0.001
    assert float(found["z"].sel(view="content-3")) > 5  # pairs are fitted, only triples can tell
    table = compare_table(comparison)
    assert table.index.tolist() == ["order 2", "order 1"]
    assert table.loc["order 1", "finding"].startswith("worse (p = ")


def test_views_count_by_their_weights() -> None:
    found = compare(WALKS, DATA)
    views = [view for view in default_views() if view.name in VIEWS]
    sums = [RowSums.of(stein_matrices(model, DATA, views)) for model in WALKS.values()]
    direct = relative_fit(sums, torch.tensor([view.weight for view in views], dtype=torch.double))
    np.testing.assert_allclose(found["statistic"].sel(view="overall"), direct.statistic[:, -1], rtol=1e-9)
    np.testing.assert_allclose(found["z"].sel(view="overall"), direct.z[..., -1], rtol=1e-9)


def test_statistics_are_those_of_a_check_of_each_model() -> None:
    found = compare(WALKS, DATA)
    assert found["view"].values.tolist() == [*VIEWS, "overall"]
    for name, model in WALKS.items():
        # A check of one model makes features of the length for it; all models are compared by the same ones.
        views = [view for view in default_views() if view.name in VIEWS]
        check = ksd_check(model, DATA, views=views, num_bootstrap=2, progress=False)["ksd"]
        np.testing.assert_allclose(found["statistic"].sel(model=name, view=VIEWS), check["statistic"], rtol=1e-9)
    assert found["rank"].sel(view="overall").values.tolist() == [2, 0, 1]


def test_a_right_model_is_not_worse_for_what_no_sequence_has() -> None:
    # No walk has a run of four equal symbols. The right model allows them a little more often than the wrong one, and a
    # view of such runs would call it worse in most of these comparisons.
    right, wrong = random_walk(8, hold=0.01), random_walk(8)
    worse = 0
    for seed in range(12):
        data = right.draw(300, torch.Generator().manual_seed(seed))
        found = compare({"right": right, "wrong": wrong}, data).sel(model="right", model_bis="wrong", view="overall")
        worse += float(found["p_value"]) <= 0.05 and float(found["z"]) > 0
    assert worse == 0
    found = compare({"right": right, "wrong": wrong}, data, views=["content-2", "repeats"])
    assert found["view"].values.tolist() == ["content-2", "repeats", "overall"]  # for those who ask for it


def test_layout_is_that_of_the_made_up_comparisons() -> None:
    whole = Sequences.of([[], *DATA.to_lists()], 5)
    with pytest.warns(UserWarning, match="'hold 0.0' gives probability zero to 1 of 41"):
        comparison = ksd_compare(WALKS, whole, progress=False)
    made_up = made_up_comparison(dict.fromkeys(WALKS, 0.0), impossible=1)
    assert set(comparison.children) == set(made_up.children)
    for name, group in made_up.children.items():
        found, expected = comparison[name].to_dataset(), group.to_dataset()
        assert {key: (v.dims, v.dtype) for key, v in found.variables.items()} == {
            key: (v.dims, v.dtype) for key, v in expected.variables.items()
        }
        assert set(expected.attrs) <= set(found.attrs)
        assert found.attrs["creation_library"] == "pyro_ksd"
    attributes = {"kind": "relative", "level": 0.05, "num_sequences": 40}
    assert attributes.items() <= comparison["ksd_compare"].attrs.items()


def test_unnormalized_models() -> None:
    likes_pairs = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.double)
    right, wrong = (LinearChainMRF(factor * likes_pairs, max_length=12) for factor in (1.0, 0.3))
    data = right.draw(150, torch.Generator().manual_seed(0))

    def as_program(factor: float) -> Any:
        def energy(sequences: Tensor, lengths: Tensor) -> None:
            inside = torch.arange(1, sequences.shape[1]) < lengths[:, None]
            pairs = factor * likes_pairs[sequences[:, :-1], sequences[:, 1:]].masked_fill(~inside, 0).sum(-1)
            with pyro.plate("sequences", len(lengths)):
                pyro.factor("energy", pairs.masked_fill((lengths < 1) | (lengths > 12), -torch.inf))

        return energy

    models = {"right": right, "wrong": wrong, "program": as_program(1.0), "wrong program": as_program(0.3)}
    comparison = ksd_compare(models, data, progress=False)
    table = compare_table(comparison)
    assert table["rank"].to_dict() == {"right": 0, "program": 0, "wrong": 2, "wrong program": 2}
    worse = table["finding"].str.startswith("worse")
    assert worse.to_dict() == {"right": False, "program": False, "wrong": True, "wrong program": True}
    assert sum(table["finding"].str.startswith("cannot be told apart from the best")) == 1


def bernoulli_steps(sequences: Tensor, lengths: Tensor) -> None:
    """Symbols and stops with the probabilities ``one`` and ``stop``."""
    one = pyro.sample("one", dist.Beta(1.0, 1.0))
    stop = pyro.param("stop", torch.tensor(0.5))
    with pyro.plate("sequences", len(lengths)):
        for t in range(sequences.shape[1]):
            with poutine.mask(mask=t < lengths):
                pyro.sample(f"x_{t}", dist.Bernoulli(one), obs=sequences[:, t].float())
                pyro.sample(f"stop_{t}", dist.Bernoulli(stop), obs=(lengths == t + 1).float())


def test_one_program_with_several_parameters() -> None:
    fair = torch.tensor([0.5, 0.5], dtype=torch.double)
    right = MarkovSequence.from_transitions(fair, fair.expand(2, 2), stop=0.25)
    data = right.draw(200, torch.Generator().manual_seed(0))
    parameters = {
        "fair": {"one": torch.tensor(0.5), "stop": torch.tensor(0.25)},
        "lopsided": {"one": torch.tensor(0.8), "stop": torch.tensor(0.25)},
        "short": {"one": torch.tensor(0.5), "stop": torch.tensor(0.6)},
    }
    comparison = ksd_compare(dict.fromkeys(parameters, bernoulli_steps), data, parameters=parameters, progress=False)
    p_value = comparison["ksd_compare"]["p_value"].sel(model_bis="fair")
    assert float(p_value.sel(model="lopsided", view="content-1")) < 0.001
    assert float(p_value.sel(model="short", view="length")) < 0.001
    # In single precision, and yet no difference where there is none.
    assert float(p_value.sel(model="lopsided", view="length")) == 1
    assert compare_table(comparison).index[0] == "fair"
    exact = compare({"program": bernoulli_steps, "chain": right}, data, parameters={"program": parameters["fair"]})
    assert exact["z"].values.tolist() == np.zeros((2, 2, len(VIEWS) + 1)).tolist()


def test_the_order_of_all_models_or_of_some() -> None:
    data = programs.CHAIN.draw(15, torch.Generator().manual_seed(1))
    models = {"first": programs.chain_with_stop, "second": programs.second_order}
    expected = compare(models, data)
    for order in (2, {"first": 1}, {"first": 1, "second": 2}):  # both are of order 2
        found = compare(models, data, order=order)
        np.testing.assert_allclose(found["statistic"], expected["statistic"], atol=1e-9)
    for order in (1, {"second": 1}):
        with pytest.warns(UserWarning, match="the model is not of order 1"):
            compare(models, data, order=order)


def test_views_may_be_chosen() -> None:
    assert compare(WALKS, DATA, views=["length"])["view"].values.tolist() == ["length", "overall"]
    own = [View("Hamming", ZanellaOperator(), HammingKernel()), "content-2"]
    found = compare(WALKS, DATA, views=own, balancing="mpf")
    assert found["view"].values.tolist() == ["Hamming", "content-2", "overall"]
    assert found["meaning"].values.tolist()[1:] == ["pairs of neighbors", "all of the above together"]


def test_lists_of_codes_have_the_alphabet_of_the_models() -> None:
    lists = [[0, 1, 2], [1, 0], [2, 1, 2, 1]]
    xr.testing.assert_equal(compare(WALKS, lists), compare(WALKS, Sequences.of(lists, 5)))


def test_models_are_compared_on_what_all_of_them_can_make() -> None:
    never = walk().probs.clone()
    never[:, 4] = 0  # not the symbol 4
    restricted = MarkovSequence(never / never.sum(-1, keepdim=True).clamp(min=1e-300))
    data = Sequences.of([[0, 1, 0], [3, 4], [2, 3], [], [1, 2, 1], [4, 0, 1], [0, 1]], 5)
    message = (
        r"the model 'all' gives probability zero to 1 of 7 sequences: sequence 3, \[\]. It cannot have made them; "
        r"the model 'never 4' gives probability zero to 3 of 7 sequences: sequence 1, \[3, 4\]; .*"
        "the models are compared on the 4 sequences that all of them can make"
    )
    with pytest.warns(UserWarning, match=message) as warned:
        comparison = ksd_compare({"all": walk(), "never 4": restricted}, data, progress=False)
    assert [warning.filename for warning in warned] == [__file__]
    expected = compare({"all": walk(), "never 4": restricted}, data[torch.tensor([0, 2, 4, 6])])
    np.testing.assert_allclose(comparison["ksd_compare"]["statistic"], expected["statistic"])
    cannot = comparison["ksd_compare_impossible"]["impossible"]
    assert cannot["sequence"].values.tolist() == [1, 3, 5]
    assert cannot.sel(model="all").values.tolist() == [False, True, False]
    assert cannot.sel(model="never 4").values.tolist() == [True, True, True]
    assert comparison["ksd_data"].sizes["sequence"] == 7
    assert (
        "'never 4' is ruled out: it gives probability zero to 3 of the 7" in compare_table(comparison).attrs["verdict"]
    )
    with pytest.raises(ValueError, match=r"'never 4' gives probability zero to 2 of 4 .*too few others are left"):
        ksd_compare({"all": walk(), "never 4": restricted}, data[1:5], progress=False)


def test_a_model_that_is_ruled_out_is_worse_than_any_other() -> None:
    never = walk(hold=0.3).probs.clone()
    never[:, 4] = 0  # not the symbol 4
    right_but_for_4 = MarkovSequence(never / never.sum(-1, keepdim=True).clamp(min=1e-300))
    models = {"never 4": right_but_for_4, "wrong": walk(hold=0.9), "right": walk(hold=0.3)}
    with pytest.warns(UserWarning, match="the model 'never 4' gives probability zero"):
        comparison = ksd_compare(models, DATA, progress=False)
    found = comparison["ksd_compare"].to_dataset()
    overall = found.sel(view="overall")
    assert overall["rank"].sel(model=["right", "wrong", "never 4"]).values.tolist() == [0, 1, 2]
    pairs = overall["p_value"].sel(model="never 4", model_bis=["never 4", "wrong", "right"])
    assert pairs.values.tolist() == [1.0, 0.0, 0.0]
    assert overall["z"].sel(model="wrong", model_bis="never 4").item() == -np.inf
    assert 0 < overall["p_value"].sel(model="wrong", model_bis="right").item() < 0.05
    assert np.isfinite(found["z"].drop_sel(view="overall")).all()
    assert compare_table(comparison).index.tolist() == ["right", "wrong", "never 4"]


def test_the_site_of_an_impossible_sequence_is_named() -> None:
    logits = torch.tensor([0.0, 0.0, -torch.inf])

    def never_two(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            for t in range(sequences.shape[1]):
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"x_{t}", dist.Categorical(logits=logits), obs=sequences[:, t])
            pyro.sample("length", dist.Poisson(3.0), obs=lengths.float())

    data = Sequences.of([[0, 1], [1, 2, 0], [1], [0, 0, 1]], 3)
    with pytest.warns(UserWarning, match="at site x_1. It cannot have made them"):
        comparison = ksd_compare({"a": programs.CHAIN, "b": never_two}, data, progress=False)
    assert comparison["ksd_compare_impossible"]["site"].values.tolist() == [[""], ["x_1"]]


def test_models_without_a_law_of_the_length_are_compared_given_the_lengths() -> None:
    def symbols_only(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            for t in range(sequences.shape[1]):
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"x_{t}", dist.Categorical(torch.ones(3) / 3), obs=sequences[:, t])

    data = programs.CHAIN.draw(20, torch.Generator().manual_seed(1))
    models = {"chain": programs.CHAIN, "symbols": symbols_only}
    with pytest.warns(UserWarning, match="^model 'symbols': the model gives no probability to lengths") as warned:
        comparison = ksd_compare(models, data, progress=False)
    assert [warning.filename for warning in warned] == [__file__]
    assert comparison["ksd_compare"]["view"].values.tolist() == [
        *(name for name in VIEWS if name != "length"),
        "overall",
    ]
    assert comparison["ksd_compare"].attrs["edits"] == "substitution"
    with pytest.raises(ValueError, match="model 'symbols': view 'content-1': found edits that change the length"):
        ksd_compare(models, data, views=default_views(), progress=False)


def test_a_model_that_knows_the_data_by_heart_is_named() -> None:
    known = {tuple(x) for x in DATA.to_lists()}

    class ByHeart:
        alphabet_size = 5

        def log_joint(self, sequences: Sequences) -> Tensor:
            return torch.tensor([0.0 if tuple(x) in known else -30.0 for x in sequences.to_lists()]).double()

        def log_ratio(self, sequences: Sequences, edits: Any) -> Tensor:
            return self.log_joint(edits.apply(sequences)) - self.log_joint(sequences)[edits.owner]

    data = Sequences.of([x for x in DATA.to_lists() if len(x) > 6], 5)  # short ones are edits of each other
    with pytest.warns(UserWarning, match="model 'by heart' hardly ever allows the edits of the view.s. content-1, con"):
        ksd_compare({"by heart": ByHeart(), "walk": Unsampled(walk(hold=0.3))}, data, progress=False)


def test_progress_is_shown_unless_switched_off(terminal: pytest.CaptureFixture[str]) -> None:
    ksd_compare(WALKS, DATA)
    assert terminal.readouterr().err.count("Stein features: 100%") >= 3
    compare(WALKS, DATA)
    assert terminal.readouterr().err == ""


@pytest.mark.parametrize(
    ("models", "arguments", "message"),
    [
        (
            [walk(), walk()],
            {},
            "models: expected them by name, such as {'order 1': first, 'order 2': s",
        ),
        (walk(), {}, "found MarkovSequence"),
        ({}, {}, "models: expected at least 2 models to compare, found none; add another one"),
        (
            {"one": walk()},
            {},
            "models: expected at least 2 models to compare, found ['one']; add another one",
        ),
        ({"one": walk(), 2: walk()}, {}, "models: expected names that are strings and not empty, found ['one', 2]"),
        (WALKS, {"parameters": {"hold": {}}}, "parameters: expected names of models, out of ['hold 0.0', "),
        (
            WALKS,
            {"order": {"other": 1}},
            "order: expected names of models, out of ['hold 0.0', 'hold 0.3', ",
        ),
        (WALKS, {"level": 0.0}, "level: expected a number between 0 and 1, such as 0.05, found 0.0"),
        (WALKS, {"views": ["content"]}, "views: expected names out of ['composition', 'content-1',"),
        (
            WALKS,
            {"views": []},
            "views: expected names of views, such as 'length', or View objects, in a list of at least",
        ),
        (WALKS, {"views": [View("overall", ZanellaOperator(), HammingKernel())]}, "found ['overall']"),
        (
            WALKS,
            {"parameters": {"hold 0.3": {"stop": torch.tensor(0.5)}}},
            "model 'hold 0.3': parameters: expected a Pyro program to pass them to, found MarkovSequence",
        ),
        ({**WALKS, "other": programs.CHAIN}, {}, "model 'other': expected sequences over the model's 3 symbols"),
        ({**WALKS, "other": 3}, {}, "model 'other': model: expected a Pyro program, a distribution, or an object"),
    ],
)
def test_refuses(models: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011
        compare(models, DATA, **arguments)
    assert message in str(error.value)


def test_refuses_too_few_sequences() -> None:
    with pytest.raises(ValueError, match="expected at least 3 sequences, found 2; the error of a difference"):
        compare(WALKS, DATA[:2])


# The edits that suit the models


def ending(stop: float) -> AutoregressiveModel:
    """A network that does not look at what it said, and ends with some probability at each step."""
    log_p = torch.tensor([(1 - stop) / 2, (1 - stop) / 2, stop], dtype=torch.double).log().expand(4, 3)
    return AutoregressiveModel(lambda codes: log_p[codes], prompt=[3], end=2, max_length=20)


def test_networks_are_compared_by_edits_before_the_end() -> None:
    # Before, all models were compared by edits of any symbol: none keeps the end, and the length saw nothing.
    late, soon = ending(0.2), ending(0.5)
    data = late.draw(60, torch.Generator().manual_seed(0))
    found = compare({"soon": soon, "late": late}, data)  # a warning would be an error
    against = found.sel(model="soon", model_bis="late")
    assert float(against["p_value"].sel(view="length")) < 0.001
    assert float(against["z"].sel(view="length")) > 3
    assert float(against["p_value"].sel(view="overall")) < 0.001
    turned = compare({"late": late, "soon": soon}, data)
    xr.testing.assert_allclose(turned.sel(model=found["model"], model_bis=found["model_bis"]), found, rtol=1e-9)
    with pytest.warns(UserWarning, match="hardly ever allows the edits of the view.s. length: its discrepancy"):
        blind = compare({"soon": soon, "late": late}, data, neighborhood=zs())
    assert float(blind["p_value"].sel(model="soon", model_bis="late", view="length")) == 1


def test_edits_of_a_network_are_also_those_of_the_others() -> None:
    network = ending(0.2)
    data = network.draw(30, torch.Generator().manual_seed(0))
    models = {"network": network, "anything": Unsampled(network)}
    found = compare(models, data)
    for order in (models, dict(reversed(models.items()))):
        again = compare(order, data).sel(model=found["model"], model_bis=found["model_bis"])
        xr.testing.assert_allclose(again, found, rtol=1e-9)
    assert float(found["statistic"].sel(model="anything", view="length")) != 0
    np.testing.assert_allclose(*(found["statistic"].sel(model=name) for name in models), rtol=1e-9)


def test_objects_with_the_methods_of_models_will_do() -> None:
    objects = {name: CountingObject(model) for name, model in WALKS.items()}
    xr.testing.assert_allclose(compare(objects, DATA.to_lists()), compare(WALKS, DATA), rtol=1e-9)
    assert [own.asked.count(DATA.to_lists()) for own in objects.values()] == [1, 1, 1]
