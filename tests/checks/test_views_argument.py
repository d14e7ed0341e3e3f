# SPDX-License-Identifier: Apache-2.0
"""The views to look at, by name and as objects."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pyro
import pyro.distributions as dist
import pytest
import torch
from example_models import Unsampled, walk
from pyro import poutine
from scipy.stats import binom
from torch import Tensor

from pyro_ksd import View, ksd_check, verdict
from pyro_ksd.checks.check_setup import set_up_check
from pyro_ksd.checks.views_argument import (
    check_keeps_length,
    chosen_views,
    keep_lengths,
    kinds_of_edits,
    recurrence,
    views_beside_draws,
)
from pyro_ksd.edits.neighborhoods import BeforeEnd, DoubleSubstitutions, Neighborhood, Substitutions, zs
from pyro_ksd.edits.splices import Edits
from pyro_ksd.fit_tests.statistics import u_statistic
from pyro_ksd.kernels import (
    CompositionKernel,
    ContiguousKernel,
    EndKernel,
    EndsKernel,
    LengthKernel,
    PositionKernel,
    RepeatsKernel,
    SkipKernel,
    StartKernel,
)
from pyro_ksd.kernels.length import LengthDistribution
from pyro_ksd.models import with_sampler
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.assembly import stein_matrices
from pyro_ksd.stein.balancing import barker, mpf
from pyro_ksd.stein.length_features import length_kernel
from pyro_ksd.stein.operators import HeatBathOperator, LengthOperator, TailBlockOperator, ZanellaOperator
from pyro_ksd.stein.views import default_views

DATA = walk(hold=0.5).draw(12, torch.Generator().manual_seed(0))
EVEN = torch.full((4,), 0.25, dtype=torch.double)


def test_views_may_be_named() -> None:
    one = ksd_check(walk(), DATA, views=["length", "content-2"], num_bootstrap=5, progress=False)
    assert one["ksd"]["view"].values.tolist() == ["length", "content-2"]
    own = View("mine", ZanellaOperator(), ContiguousKernel(1, 2))
    two = ksd_check(walk(), DATA, views=[own, "start"], balancing="mpf", num_bootstrap=5, progress=False)
    assert two["ksd"]["view"].values.tolist() == ["mine", "start"]
    assert {"00", "0"} <= set(two["ksd_ngram"]["label"].values.tolist())


def test_longer_runs_have_names_too() -> None:
    check = ksd_check(walk(), DATA, views=["content-1", "content-4"], num_bootstrap=5, progress=False)
    assert check["ksd"]["meaning"].values.tolist() == ["single symbols", "runs of 4 symbols"]
    for name in ("content-0", "content-100", "content", "content-2a", "length-2", "mirror-3", "ends-2", "skip-"):
        with pytest.raises(ValueError, match=f"such as content-4, .* or repeats-6, or View objects, found '{name}'"):
            ksd_check(walk(), DATA, views=name, num_bootstrap=5, progress=False)


def test_kinds_of_views_take_numbers() -> None:
    names = ["content-4", "position-3", "skip-5", "start-2", "end-2", "repeats-6", "end", "ends", "composition"]
    views = chosen_views(names, None, None, [walk()], DATA)
    assert [view.name for view in views] == names
    kernels = [view.kernel for view in views]
    expected = [
        ContiguousKernel(4),
        PositionKernel(3),
        SkipKernel((5,)),
        StartKernel(2),
        EndKernel(2),
        RepeatsKernel(6),
        EndKernel(),
        EndsKernel(),
        CompositionKernel(),
    ]
    for found, like in zip(kernels, expected, strict=True):
        assert type(found) is type(like)
        np.testing.assert_array_equal(found.gram(DATA, DATA), like.gram(DATA, DATA))
    assert isinstance(views[0].operator, ZanellaOperator)
    assert {type(view.operator) for view in views[1:]} == {HeatBathOperator}


def test_weights_of_views() -> None:
    default = chosen_views(None, None, None, [walk()], DATA)
    assert sum(view.weight for view in default) == pytest.approx(5)  # five questions
    assert [view.weight for view in default] == [view.weight for view in default_views()]
    named = chosen_views(["content-2", "skip", "skip-5", "end"], None, None, [walk()], DATA)
    assert [view.weight for view in named] == [1.0] * 4
    own = View("mine", ZanellaOperator(), ContiguousKernel(1), weight=3.0)
    assert [view.weight for view in chosen_views([own, "start"], None, None, [walk()], DATA)] == [3.0, 1.0]


def test_features_of_the_length_are_made_for_one_model() -> None:
    [view] = chosen_views("length", None, None, [walk()], DATA)
    assert isinstance(view.kernel, LengthKernel)
    assert view.kernel.distribution is not None
    [same] = chosen_views("length", None, None, [walk(), walk()], DATA)
    assert isinstance(same.kernel, LengthKernel)
    assert same.kernel.distribution is None  # the square of the length, by which several models are compared


def test_a_known_distribution_of_the_length_is_used() -> None:
    distribution = walk().length_distribution()
    views = chosen_views(None, None, "mpf", [walk()], DATA, lengths=distribution)
    [length] = [view.operator for view in views if view.name == "length"]
    assert isinstance(length, LengthOperator)
    assert length.balancing is mpf
    [alone] = chosen_views("length", None, "mpf", [walk()], DATA, lengths=distribution)
    assert isinstance(alone.operator, LengthOperator)
    [otherwise] = chosen_views("length", BeforeEnd(zs()), None, [walk()], DATA, lengths=LengthDistribution(0, EVEN))
    assert isinstance(otherwise.operator, TailBlockOperator)


def test_estimated_lengths_serve_where_null_draws_come_from_the_model() -> None:
    own = View("mine", TailBlockOperator(), LengthKernel(distribution=LengthDistribution(1, EVEN)))
    views = chosen_views(["length", own], None, None, [Unsampled(walk())], DATA, drawn=DATA)
    found = views_beside_draws(views, ["length", own], DATA)
    assert [type(view.operator) for view in found] == [LengthOperator, TailBlockOperator]
    assert found[1] is own
    assert views_beside_draws([own], own, DATA) == [own]
    assert views_beside_draws(views, ["length", own], None) == views
    given = DATA.with_covariates([[float(row)] for row in range(len(DATA))])
    assert views_beside_draws(views, ["length", own], given) == views


def test_which_lengths_a_check_compares() -> None:
    """Known ones if the model tells them, those of its draws beside null draws, otherwise those of its ratios."""
    options: dict[str, Any] = {"views": "length", "num_bootstrap": 19, "progress": False}
    drawing = with_sampler(Unsampled(walk()), walk().draw)
    statistics = {
        name: float(ksd_check(model, DATA, bootstrap=bootstrap, **options)["ksd"]["statistic"][0])
        for name, model, bootstrap in [
            ("known", walk(), "parametric"),
            ("known, signs", walk(), "wild"),
            ("drawn", drawing, "parametric"),
            ("drawn, signs", drawing, "wild"),
        ]
    }
    assert statistics["known"] == statistics["known, signs"]
    setup = set_up_check(drawing, DATA, (), "length", None, None, draws=True)
    matrices = {
        "drawn": stein_matrices(drawing, DATA, views_beside_draws(setup.views, "length", setup.drawn)),
        "drawn, signs": stein_matrices(drawing, DATA, setup.views),
    }
    for name, [matrix] in matrices.items():
        assert statistics[name] == pytest.approx(float(u_statistic(matrix)), rel=1e-10)
    assert len(set(statistics.values())) == 3


def test_impossible_sequences_say_nothing_of_the_length() -> None:
    class NoZeros(Unsampled):
        """A walk that gives probability 0 to every sequence with the symbol 0."""

        def log_joint(self, sequences: Sequences) -> Tensor:
            banned = ((sequences.tokens == 0) & sequences.mask).any(1)
            return super().log_joint(sequences).masked_fill(banned, -torch.inf)

        def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
            assert self.log_joint(sequences).isfinite().all()
            return SequenceModel.log_ratio(self, sequences, edits)

    model = NoZeros(walk())
    log_joint = model.log_joint(DATA)
    possible = log_joint > -torch.inf
    assert 2 < int(possible.sum()) < len(DATA)
    [view] = set_up_check(model, DATA, (), "length", None, None, draws=False).views
    [alone] = chosen_views("length", None, None, [model], DATA[possible])
    lengths = Sequences.of([[1] * length for length in range(1, 20)], 5)
    np.testing.assert_array_equal(view.kernel.gram(lengths, lengths), alone.kernel.gram(lengths, lengths))
    [unknown] = chosen_views("length", None, None, [model], DATA, possible=DATA[:0])
    assert isinstance(unknown.kernel, LengthKernel)
    assert unknown.kernel.distribution is None


class Suited(Unsampled):
    """A walk that states which edits suit it."""

    def __init__(self, around: Neighborhood | None) -> None:
        super().__init__(walk())
        self.around = around

    @property
    def default_neighborhood(self) -> Neighborhood | None:
        return self.around


def after(neighborhood: Neighborhood) -> set[tuple[int, tuple[int, ...]]]:
    """The row and the result of each edit of the data."""
    edits = neighborhood.edits(DATA)
    results = map(tuple, edits.apply(DATA).to_lists())
    return set(zip(edits.owner.tolist(), results, strict=True))


@pytest.mark.parametrize(
    ("stated", "around", "tail"),
    [
        ([None], zs(), zs(1)),
        ([None, None], zs(), zs(1)),
        ([None, BeforeEnd(zs())], BeforeEnd(zs()), BeforeEnd(zs(1))),
        ([BeforeEnd(zs()), BeforeEnd(zs())], BeforeEnd(zs()), BeforeEnd(zs(1))),
        ([Substitutions(2), None, BeforeEnd(zs())], Substitutions(2) | BeforeEnd(zs()), zs(1) | BeforeEnd(zs(1))),
    ],
)
def test_edits_are_those_that_suit_the_models(
    stated: list[Neighborhood | None], around: Neighborhood, tail: Neighborhood
) -> None:
    for order in (stated, stated[::-1]):
        views = chosen_views(None, None, None, [Suited(own) for own in order], DATA)
        assert [view.name for view in views] == [view.name for view in default_views()]
        for view in views:
            expected = tail if view.name == "length" else around
            assert after(view.operator.neighborhood) == after(expected)
    given = chosen_views(None, Substitutions(), None, [Suited(own) for own in stated], DATA)
    assert after(given[0].operator.neighborhood) == after(Substitutions())  # what the user asks for comes first


def test_names_and_own_views_keep_their_order() -> None:
    own = View("mine", ZanellaOperator(), ContiguousKernel(1, 2))
    models = [walk()]
    assert chosen_views(own, None, None, models, DATA) == [own]
    assert [view.name for view in chosen_views("start", None, None, models, DATA)] == ["start"]
    mixed = chosen_views(["content-5", own, "length"], None, "mpf", models, DATA)
    assert [view.name for view in mixed] == ["content-5", "mine", "length"]
    assert mixed[1] is own
    assert {view.operator.balancing for view in (mixed[0], mixed[2])} == {mpf}  # type: ignore[attr-defined]
    for arguments in ((Substitutions(), None), (None, "mpf")):
        with pytest.raises(ValueError, match="neighborhood= and balancing= belong to the default views"):
            chosen_views([own], *arguments, models, DATA)  # type: ignore[arg-type]


def test_without_probabilities_of_lengths_there_are_only_substitutions() -> None:
    why = "the model does not define lengths"
    with pytest.warns(UserWarning, match=f"^{why}$"):
        views = chosen_views(None, None, None, [walk()], DATA, given_lengths=why)
    assert [view.name for view in views] == [view.name for view in default_views() if view.name != "length"]
    assert kinds_of_edits(views) == "substitution"
    check_keeps_length(views, DATA, why)
    given = chosen_views(None, Substitutions(1), None, [walk()], DATA, given_lengths=why)  # no warning
    check_keeps_length(given, DATA, why)
    others = chosen_views(None, zs(), None, [walk()], DATA, given_lengths=why)
    with pytest.raises(ValueError, match=f"view 'content-1': found edits that change the length, but {why}"):
        check_keeps_length(others, DATA, why)
    with pytest.raises(ValueError, match=r"views: expected names out of .*'ends', 'mirror', .* found 'length'"):
        chosen_views("length", Substitutions(), None, [walk()], DATA, given_lengths=why)


@pytest.mark.parametrize(
    "around", [Substitutions(), BeforeEnd(Substitutions(2)), Substitutions() | DoubleSubstitutions()]
)
def test_with_substitutions_alone_no_view_changes_a_length(around: Neighborhood) -> None:
    views = chosen_views(None, around, None, [walk()], DATA)
    assert [view.name for view in views] == [view.name for view in default_views() if view.name != "length"]
    check_keeps_length(views, DATA, "only symbols are replaced")
    assert keep_lengths(views)
    assert not keep_lengths(chosen_views(None, None, None, [walk()], DATA))
    assert not keep_lengths(chosen_views(None, zs(1), None, [walk()], DATA))
    with pytest.raises(ValueError, match="views: found 'length', but neighborhood= has only substitutions"):
        chosen_views(["start", "length"], around, None, [walk()], DATA)


def coins(sequences: Tensor, lengths: Tensor) -> None:
    with pyro.plate("sequences", len(lengths)):
        for t in range(sequences.shape[1]):
            with poutine.mask(mask=t < lengths):
                fn = dist.Bernoulli(torch.full((10,), 0.1)).to_event(1)
                pyro.sample(f"y_{t}", fn, obs=sequences[:, t].float())
                pyro.sample(f"stop_{t}", dist.Bernoulli(0.3), obs=(lengths == t + 1).float())


def tossed(count: int, seed: int) -> Sequences:
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.empty(count).geometric_(0.3, generator=generator).long().tolist()
    return Sequences.of([torch.bernoulli(torch.full((n, 10), 0.1), generator=generator) for n in lengths])


def test_vectors_that_were_read_off_the_data_are_switched_one_channel_at_a_time() -> None:
    data = tossed(40, 0)
    with pytest.warns(UserWarning, match="switch one channel of a vector, and the views count channels"):
        check = ksd_check(coins, data, num_bootstrap=50, progress=False)
    assert [str(name) for name in check["ksd"]["view"].values] == ["channels", "channels-2", "channel-pairs"]
    assert check["ksd"].attrs["kind"] == "wild"
    assert check["ksd"].attrs["edits"] == "substitution"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asked = ksd_check(coins, data, views=["content-2"], num_bootstrap=50, progress=False)
    assert [str(name) for name in asked["ksd"]["view"].values] == ["content-2"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the .* vectors of the alphabet")
def test_level_with_vectors_that_were_read_off_the_data() -> None:
    runs, level = 200, 0.05
    p_values = torch.tensor(
        [
            float(ksd_check(coins, tossed(40, 1000 + run), num_bootstrap=99, progress=False)["ksd"]["p_value_overall"])
            for run in range(runs)
        ]
    )
    rejected = int((p_values <= level).sum())
    print(f"\nvectors of the data, n = 40: {rejected} of {runs}, mean p {p_values.mean():.3f}")
    assert rejected <= binom.ppf(0.999, runs, level)


@pytest.mark.filterwarnings("ignore:the .* vectors of the alphabet")
def test_a_wrong_channel_is_found_and_named() -> None:
    def wrong(sequences: Tensor, lengths: Tensor) -> None:
        probs = torch.full((10,), 0.1).index_fill_(0, torch.tensor([7]), 0.4)
        with pyro.plate("sequences", len(lengths)):
            for t in range(sequences.shape[1]):
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"y_{t}", dist.Bernoulli(probs).to_event(1), obs=sequences[:, t].float())

    with pytest.warns(UserWarning, match="no probability to lengths"):
        check = ksd_check(wrong, tossed(60, 1), num_bootstrap=200, progress=False)
    assert "'channel 7' is too large under the model" in verdict(check)


@pytest.mark.filterwarnings("ignore:the .* vectors of the alphabet")
def test_channels_that_depend_on_each_other_are_found() -> None:
    generator = torch.Generator().manual_seed(0)
    rows = [torch.bernoulli(torch.full((4, 10), 0.1), generator=generator) for _ in range(80)]
    copies = [row.index_copy(1, torch.tensor([1]), row[:, :1]) for row in rows]  # the second channel copies the first

    def fixed(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            for t in range(sequences.shape[1]):
                with poutine.mask(mask=t < lengths):
                    fn = dist.Bernoulli(torch.full((10,), 0.1)).to_event(1)
                    pyro.sample(f"y_{t}", fn, obs=sequences[:, t].float())

    options: Any = {"num_bootstrap": 200, "progress": False}
    with pytest.warns(UserWarning, match="no probability to lengths"):
        assert float(ksd_check(fixed, rows, **options)["ksd"]["p_value_overall"]) > 0.05
    with pytest.warns(UserWarning, match="no probability to lengths"):
        found = ksd_check(fixed, copies, **options)["ksd"]
    assert float(found["p_value"].sel(view="channel-pairs")) < 0.02
    assert float(found["p_value_overall"]) <= 0.05


def test_runs_that_occur_in_several_sequences() -> None:
    data = Sequences.of(["abc", "ab", "ccc", ""])
    assert recurrence(data, 1) == 1.0
    assert recurrence(data, 2) == pytest.approx(2 / 5)
    assert recurrence(data, 3) == recurrence(data, 4) == 0.0


def test_the_features_of_the_length_are_made_for_the_balancing_function() -> None:
    lengths = torch.arange(1, 9)
    for balancing in (mpf, barker):
        [view] = chosen_views("length", None, balancing, [walk()], DATA)
        expected = length_kernel(walk(), DATA, zs(locations=1), balancing)
        assert isinstance(view.kernel, LengthKernel)
        assert expected is not None
        torch.testing.assert_close(view.kernel.feature(lengths), expected.feature(lengths))
        assert isinstance(view.operator, TailBlockOperator)
        assert view.operator.balancing is balancing
