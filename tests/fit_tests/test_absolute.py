# SPDX-License-Identifier: Apache-2.0
"""The test of fit in tensors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyro
import pytest
import torch
from example_models import Unsampled, walk

from pyro_ksd import ksd_check
from pyro_ksd.common.checkpoints import Checkpoint
from pyro_ksd.edits.neighborhoods import Substitutions
from pyro_ksd.edits.splices import Edits
from pyro_ksd.fit_tests import absolute
from pyro_ksd.fit_tests.absolute import goodness_of_fit
from pyro_ksd.fit_tests.null_draws import wild_bootstrap
from pyro_ksd.kernels import ContiguousKernel, HammingKernel
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.models import LoopProgram, MarkovSequence, with_sampler
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.impossible_sequences import check_possible
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.assembly import stein_matrices
from pyro_ksd.stein.operators import ZanellaOperator
from pyro_ksd.stein.signs import Signs
from pyro_ksd.stein.views import View, default_views
from pyro_ksd.stein.visits import Visits


def data(hold: float = 0.0, num: int = 20, seed: int = 1) -> Sequences:
    return walk(hold=hold).draw(num, torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("bootstrap", ["parametric", "wild"])
def test_finds_a_wrong_model_and_keeps_a_right_one(bootstrap: Any) -> None:
    model = walk()
    wrong = goodness_of_fit(model, data(hold=0.6, num=40), default_views(), bootstrap=bootstrap, num_bootstrap=199)
    right = goodness_of_fit(model, data(num=40), default_views(), bootstrap=bootstrap, num_bootstrap=199)
    assert wrong.p_value_overall <= 0.02
    assert right.p_value_overall > 0.05
    assert wrong.kind == bootstrap
    assert wrong.null.statistic.shape == wrong.null.extreme.shape == (199, 10)
    assert [view.name for view in wrong.views] == [view.name for view in default_views()]
    assert list(wrong.seconds) == ["model", "kernels", "bootstrap"]
    assert all(0 < seconds < 60 for seconds in wrong.seconds.values())


def test_one_view_is_the_plain_test_of_the_paper() -> None:
    view = View("bigrams", ZanellaOperator(), ContiguousKernel(2))
    found = goodness_of_fit(walk(), data(), [view], num_bootstrap=50)
    assert found.p_value_overall == pytest.approx(float(found.p_value[0]))
    expected = (1 + int((found.null.statistic >= found.statistic).sum())) / 51
    assert found.p_value_overall == pytest.approx(expected)


def test_auto_is_wild_for_a_loop_that_branches_on_its_symbols() -> None:
    def branching() -> None:
        t, stop, probs = 0, False, torch.tensor([0.5, 0.5])
        while not stop:
            x = pyro.sample(f"x_{t}", pyro.distributions.Categorical(probs))
            probs = torch.tensor([0.9, 0.1]) if x == 1 else torch.tensor([0.4, 0.6])
            stop = bool(pyro.sample(f"stop_{t}", pyro.distributions.Bernoulli(0.4)))
            t += 1

    sequences = Sequences.of([[0, 1], [1], [1, 0, 0], [0]] * 3, 2)
    with pytest.warns(UserWarning, match="cannot be vectorized"):
        check = ksd_check(branching, sequences, num_bootstrap=5, progress=False)
    assert check["ksd"].attrs["kind"] == "wild"
    model = LoopProgram(branching, 2)
    assert not model.is_costly
    with pytest.warns(UserWarning, match="cannot be vectorized"):
        found = goodness_of_fit(with_sampler(model, model.draw), sequences, default_views()[:1], num_bootstrap=5)
    assert found.kind == "wild"
    assert model.is_costly
    asked = goodness_of_fit(model, sequences, default_views()[:1], bootstrap="parametric", num_bootstrap=2)
    assert asked.kind == "parametric"


def test_what_the_data_lack_is_looked_for_only_where_it_may_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    views = default_views()[:3]
    data = walk().draw(150, torch.Generator().manual_seed(0))
    first = [torch.tensor([0.2, 0.21, 0.05], dtype=torch.double)]
    own = absolute.p_value
    looked: list[str] = []

    def recorded(model: object, view: View, *others: Any) -> None:
        looked.append(view.name)

    monkeypatch.setattr(absolute, "p_value", lambda *values: first.pop() if first else own(*values))
    monkeypatch.setattr(absolute, "missing_rows", recorded)
    goodness_of_fit(walk(), data, views, bootstrap="wild", num_bootstrap=9)
    assert looked == [views[0].name, views[2].name]


@pytest.mark.parametrize("lacks", [True, False])
def test_what_the_data_lack_joins_in_the_null_draws(lacks: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    views, data = default_views()[:2], walk(hold=0.6).draw(150, torch.Generator().manual_seed(0))
    sizes = (5, 25)
    rows = [FeatureMatrix(9.0 * torch.ones(3, size).double()) for size in sizes]
    monkeypatch.setattr(absolute, "missing_rows", lambda visits, view, *_: rows[views.index(view)] if lacks else None)
    found = goodness_of_fit(walk(), data, views, bootstrap="wild", num_bootstrap=19)
    assert float(found.p_value.max()) <= 0.2 or lacks
    matrices = stein_matrices(walk(), data, views)
    expected = wild_bootstrap(matrices, views, Signs(0, 19), missing=rows if lacks else None)
    torch.testing.assert_close(found.null.statistic, expected.statistic, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("bootstrap", ["auto", "parametric"])
def test_fitted_models_are_fitted_again(bootstrap: str) -> None:
    rows = data(num=10)
    assert absolute.bootstrap_kind(walk(), rows, default_views(), bootstrap, refitted=True) == "refit"
    assert absolute.bootstrap_kind(walk(), rows, default_views(), bootstrap) == "parametric"
    with pytest.raises(ValueError, match="bootstrap: expected 'parametric' with refit=, found 'wild', which draws no"):
        absolute.bootstrap_kind(walk(), rows, default_views(), "wild", refitted=True)
    with pytest.raises(ValueError, match="found Unsampled without one; let the program draw"):
        absolute.bootstrap_kind(Unsampled(walk()), rows, default_views(), bootstrap, refitted=True)


class OnlyJoint(Unsampled):
    """A model whose edited sequences are all scored."""

    log_ratio = SequenceModel.log_ratio


def test_auto_is_parametric_for_few_sequences_of_a_model_that_can_be_sampled() -> None:
    model, views = walk(), [View("symbols", ZanellaOperator(Substitutions()), ContiguousKernel(1))]

    def kind(own: SequenceModel, num: int, length: int) -> str:
        rows = Sequences.of([[(number + place) % 5 for place in range(length)] for number in range(num)], 5)
        return goodness_of_fit(own, rows, views, num_bootstrap=3).kind

    assert kind(model, 99, 60) == "parametric"
    assert kind(model, 100, 50) == "parametric"  # 20,000 edits
    assert kind(model, 100, 51) == "wild"
    assert kind(model, 500, 10) == "parametric"
    assert kind(model, 501, 10) == "wild"
    assert kind(Unsampled(model), 10, 5) == "wild"
    scored = with_sampler(OnlyJoint(model), model.draw)  # every edited sequence is scored, 6 symbols and an end
    assert kind(scored, 119, 6) == "parametric"
    assert kind(scored, 120, 6) == "wild"
    assert kind(scored, 99, 60) == "parametric"


@pytest.mark.parametrize("bootstrap", ["parametric", "wild"])
def test_seeds_give_the_same_result_on_one_and_on_several_threads(bootstrap: Any) -> None:
    views = [*default_views(), View("Hamming", ZanellaOperator(), HammingKernel())]

    def run(seed: int) -> Any:
        return goodness_of_fit(walk(), data(num=12), views, bootstrap=bootstrap, num_bootstrap=30, seed=seed)

    threads = torch.get_num_threads()
    state = torch.get_rng_state()
    try:
        torch.set_num_threads(1)
        one = run(3)
        torch.set_num_threads(4)
        several = run(3)
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(torch.get_rng_state(), state)
    torch.testing.assert_close(one.null.statistic, several.null.statistic, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(one.null.extreme, several.null.extreme, rtol=1e-10, atol=1e-12, equal_nan=True)
    assert one.p_value.tolist() == several.p_value.tolist()
    assert one.p_value_overall == several.p_value_overall
    assert not torch.allclose(run(4).null.statistic, one.null.statistic)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"views": []}, "views: expected a list of View objects, at least one, found []"),
        ({"views": default_views()[:1] * 2}, "distinct names, found ['content-1', 'content-1']"),
        ({"num_bootstrap": 0}, "num_bootstrap: expected an integer of at least 1, found 0"),
        ({"bootstrap": "tame"}, "bootstrap: expected 'auto', 'parametric' or 'wild', found 'tame'"),
        ({"sequences": data(num=1)}, "expected at least 2 sequences, found 1"),
        (
            {"model": Unsampled(walk()), "bootstrap": "parametric"},
            "expected a model with a draw() method for the parametric bootstrap, found Unsampled without one; let",
        ),
        (
            {"sequences": Sequences.of([[0, 1], [2]])},
            "expected sequences over the model's 5 symbols, found an alphabet of 3; state it in Sequences.of(",
        ),
        (
            {"sequences": Sequences.of([[0, 1], [], [2], []], 5)},
            "the model gives probability zero to 2 of 4 sequences: sequence 1, []; sequence 3, []. It",
        ),
    ],
)
def test_refuses(arguments: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"model": walk(), "sequences": data(), "views": default_views()[:1]} | arguments
    with pytest.raises(ValueError) as error:  # noqa: PT011
        goodness_of_fit(**given)
    assert message in str(error.value)


def test_possible_sequences_pass() -> None:
    check_possible(walk(), data())


def test_progress_can_be_seen_and_switched_off(terminal: pytest.CaptureFixture[str]) -> None:
    data = walk().draw(5, torch.Generator().manual_seed(0))
    for progress in (False, True):
        goodness_of_fit(walk(), data, default_views()[:1], bootstrap="wild", num_bootstrap=5, progress=progress)
        shown = terminal.readouterr().err
        assert ("Stein features: 100%" in shown) == progress


class Planted(SequenceModel):
    """A chain without short cuts; sequences that contain a word are another factor as probable."""

    alphabet_size = 3

    def __init__(self, word: list[int], log_factor: float) -> None:
        even = torch.full((3, 3), 1 / 3, dtype=torch.double)
        self.chain = MarkovSequence.from_transitions(even[0], even, stop=0.1)
        self.word = torch.tensor(word)
        self.log_factor = log_factor

    def log_joint(self, sequences: Sequences) -> torch.Tensor:
        tokens = torch.nn.functional.pad(sequences.padded(-1), (0, len(self.word)), value=-1)
        seen = (tokens.unfold(1, len(self.word), 1) == self.word).all(-1).any(-1)
        return self.chain.log_joint(sequences) + self.log_factor * seen

    @property
    def can_draw(self) -> bool:
        return True

    def draw(self, num_sequences: int, generator: torch.Generator | None = None) -> Sequences:
        return self.chain.draw(num_sequences, generator)


@pytest.mark.parametrize(("word", "order"), [([0], 1), ([0, 1, 2, 0, 1], None)])
def test_verified_stand_in_change_no_number(word: list[int], order: int | None) -> None:
    """A word of one symbol is no dependence; the table of a model that looks far back is dropped again."""
    model = Planted(word, 0.0 if order else 0.5)
    rows = model.chain.draw(40, torch.Generator().manual_seed(1))
    possible = rows[~torch.tensor(["0, 1, 2, 0, 1" in str(x) for x in rows.to_lists()])]
    options: dict[str, Any] = {"bootstrap": "parametric", "num_bootstrap": 30, "seed": 5}
    plain = goodness_of_fit(model, possible, default_views()[:3], **options)
    found = goodness_of_fit(model, possible, default_views()[:3], verified_stand_in=True, **options)
    assert plain.verified_form is None
    assert found.verified_form == order
    torch.testing.assert_close(found.null.statistic, plain.null.statistic, rtol=1e-6, atol=1e-9)
    if order is None:
        assert found.null.statistic.equal(plain.null.statistic)


@pytest.mark.parametrize("bootstrap", ["wild", "parametric"])
def test_work_on_other_data_models_or_draws_is_not_gone_on_with(bootstrap: Any, tmp_path: Path) -> None:
    kept, views = Checkpoint(tmp_path / "kept"), default_views()[:3]
    options: dict[str, Any] = {"bootstrap": bootstrap, "num_bootstrap": 9, "seed": 5, "checkpoint": kept}
    first = goodness_of_fit(walk(), data(), views, **options)
    again = goodness_of_fit(walk(), data(), views, **options)
    assert again.null.statistic.equal(first.null.statistic)
    other_kernel = [*views[:2], View(views[2].name, views[2].operator, ContiguousKernel(2))]
    other_rates = [View(view.name, ZanellaOperator(balancing="mpf"), view.kernel) for view in views]
    changed: list[tuple[str, SequenceModel, Sequences, list[View], dict[str, Any]]] = [
        ("data", walk(), data(seed=2), views, {}),
        ("views", walk(), data(), views[:2], {}),
        ("model or views", walk(hold=0.1), data(), views, {}),
        ("model or views", walk(), data(), other_kernel, {}),
        ("model or views", walk(), data(), other_rates, {}),
        ("num_bootstrap", walk(), data(), views, {"num_bootstrap": 10}),
        ("seed", walk(), data(), views, {"seed": 6}),
        ("bootstrap", walk(), data(), views, {"bootstrap": {"wild": "parametric", "parametric": "wild"}[bootstrap]}),
    ]
    for name, model, rows, own, changes in changed:
        with pytest.raises(ValueError, match=f"which differs in: .*{name}"):
            goodness_of_fit(model, rows, own, **(options | changes))


def test_a_bar_for_each_visit_of_the_data(
    monkeypatch: pytest.MonkeyPatch, terminal: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("pyro_ksd.stein.summation.SIGNED_ENTRIES", 200)
    monkeypatch.setattr("pyro_ksd.stein.summation.SUMMED_ENTRIES", 1)
    options: dict[str, Any] = {"bootstrap": "wild", "num_bootstrap": 400}
    goodness_of_fit(walk(), data(), default_views()[:1], progress=True, **options)
    assert terminal.readouterr().err.count("Stein features: 100%") > 2  # later ones have further draws of signs
    goodness_of_fit(walk(), data(), default_views()[:1], **options)
    assert terminal.readouterr().err == ""


def test_the_model_is_known_by_all_it_says_of_the_sequences() -> None:
    """Log-joints that are known already, and ratios that differ from them."""
    visits = Visits(walk(), data(), default_views()[:1])
    known = walk().log_joint(data())
    own = absolute.fingerprint(visits, None)
    assert own == absolute.fingerprint(visits, known)
    assert own != absolute.fingerprint(visits, known + 1)

    class OtherRatios(Unsampled):
        def log_ratio(self, sequences: Sequences, edits: Edits) -> torch.Tensor:
            return super().log_ratio(sequences, edits) + 0.1

    assert own != absolute.fingerprint(Visits(OtherRatios(walk()), data(), default_views()[:1]), known)


def test_a_test_of_partitioned_data_has_no_visits_of_all() -> None:
    found = goodness_of_fit(walk(), data(), default_views()[:1], num_bootstrap=5)
    assert found.visits_of_all("localize") is found.visits
    with pytest.raises(ValueError, match="localize: expected a test of data in memory, found one of partitioned data"):
        replace(found, visits=None).visits_of_all("localize")


def test_tables_are_asked_for_by_a_flag() -> None:
    with pytest.raises(ValueError, match="verified_stand_in: expected True or False"):
        goodness_of_fit(walk(), data(), default_views()[:1], verified_stand_in="auto")  # type: ignore[arg-type]


def test_null_draws_of_wrong_tables_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the tables is left, not even in the random numbers."""
    monkeypatch.setattr("pyro_ksd.models.wrappers.verified_stand_in.found_order", lambda model, data: 1)
    model = Planted([0, 1], 0.5)
    rows = model.chain.draw(30, torch.Generator().manual_seed(1))
    options: dict[str, Any] = {"bootstrap": "parametric", "num_bootstrap": 70, "seed": 5}
    plain = goodness_of_fit(model, rows, default_views()[:2], **options)
    found = goodness_of_fit(model, rows, default_views()[:2], verified_stand_in=True, **options)
    assert found.verified_form is None
    assert found.null.statistic.equal(plain.null.statistic)
