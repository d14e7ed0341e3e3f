# SPDX-License-Identifier: Apache-2.0
"""Programs with continuous latents for each sequence, against exact integration."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import pyro
import pyro.distributions as dist
import pytest
import torch
from pyro import poutine
from scipy.integrate import quad
from scipy.stats import binom, norm
from torch import Tensor

from pyro_ksd import Sequences, ksd_check, ksd_compare
from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.models import Marginal, RefitSVI, as_model
from pyro_ksd.models.posterior.posterior_models import PosteriorModels
from pyro_ksd.models.programs.marginal import MarginalProgram

pytestmark = pytest.mark.filterwarnings("ignore:the latents .* are integrated out")

SIZE = 3
TASTE = torch.tensor([1.5, 0.0, -1.5]).double()
OTHER = torch.tensor([0.0, 1.0, -0.5]).double()
LISTS = [[0, 0, 1], [2], [1, 1], [2, 2, 0, 2], [0, 1, 2]]
DATA = Sequences.of(LISTS, SIZE)


def symbols(sequences: Tensor, lengths: Tensor, logits: Tensor) -> None:
    """Symbols that are independent given the logits, and a Poisson length."""
    for t in range(sequences.shape[1]):
        with poutine.mask(mask=t < lengths):
            pyro.sample(f"x_{t}", dist.Categorical(logits=logits), obs=sequences[:, t])
    pyro.sample("length", dist.Poisson(torch.tensor(4.0).double()), obs=lengths.double())


def standard(count: int, *shape: int) -> Any:
    return dist.Normal(torch.zeros(count, *shape).double(), 1.0)


def random_effect(sequences: Any, lengths: Any, num_sequences: int | None = None, strength: float = 1.0) -> Any:
    count = len(lengths) if num_sequences is None else num_sequences
    with pyro.plate("sequences", count):
        z = pyro.sample("z", standard(count))
        logits = strength * TASTE * z[:, None]
        if num_sequences is None:
            return symbols(sequences, lengths, logits)
        drawn = 4.0 * torch.ones(count, dtype=torch.double)
        lengths = torch.poisson(drawn).long()
        return dist.Categorical(logits=logits).sample((max(1, int(lengths.max())),)).T, lengths


def log_length(x: list[int]) -> float:
    return len(x) * math.log(4.0) - math.lgamma(len(x) + 1) - 4.0


def likelihood(x: list[int], logits: Tensor) -> float:
    shares = logits.softmax(0)
    return math.prod(float(shares[a]) for a in x)


def log_effect(x: list[int], strength: float = 1.0) -> float:
    total, _ = quad(lambda z: norm.pdf(z) * likelihood(x, strength * TASTE * z), -9, 9, epsabs=1e-13, epsrel=1e-11)
    return math.log(total) + log_length(x)


def assert_ratios(model: Any, truth: Callable[[list[int]], float], tolerance: float, data: Sequences = DATA) -> None:
    edits = zs(locations=1).edits(data)
    found = model.log_ratio(data, edits).tolist()
    rows = data.to_lists()
    for ratio, owner, y in zip(found, edits.owner.tolist(), edits.apply(data).to_lists(), strict=True):
        expected = truth(y) - truth(rows[owner])  # type: ignore[arg-type]
        assert ratio == pytest.approx(expected, abs=tolerance), (rows[owner], y)


def encoder(sequences: Any, lengths: Any) -> None:
    """Close to the posterior, as a trained encoder would be."""
    inside = torch.arange(sequences.shape[1]) < lengths[:, None]
    with pyro.plate("sequences", len(lengths)):
        loc = (TASTE[sequences] * inside).sum(1) / (1 + lengths)
        pyro.sample("z", dist.Normal(loc, 1.2 / (1 + 0.3 * lengths.double()).sqrt()))


@pytest.mark.parametrize(
    ("marginal", "tolerance"),
    [(Marginal(), 1e-8), (Marginal(num_points=32), 1e-4), (Marginal(encoder, 64), 1e-4), (Marginal(encoder), 1e-7)],
)
def test_one_latent_against_quadrature(marginal: Marginal, tolerance: float) -> None:
    model = as_model(random_effect, DATA, marginal=marginal)
    assert_ratios(model, log_effect, tolerance)
    expected = [log_effect(x) for x in LISTS]
    assert model.log_joint(DATA).tolist() == pytest.approx(expected, abs=tolerance)


def test_the_empty_sequence_has_its_probability() -> None:
    for marginal in (Marginal(), Marginal(encoder)):
        data = Sequences.of([[], [0, 1]], SIZE)
        assert as_model(random_effect, data, marginal=marginal).log_joint(data)[0].item() == pytest.approx(-4.0)


def test_the_empty_sequence_is_impossible_where_no_site_gives_it_a_probability() -> None:
    def stopping(sequences: Any, lengths: Any) -> None:
        with pyro.plate("sequences", len(lengths)):
            z = pyro.sample("z", standard(len(lengths)))
            for t in range(sequences.shape[1]):
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"x_{t}", dist.Categorical(logits=TASTE * z[:, None]), obs=sequences[:, t])
                    pyro.sample(f"stop_{t}", dist.Bernoulli(0.3), obs=(lengths == t + 1).float())

    for marginal in (Marginal(), Marginal(encoder)):
        model = as_model(stopping, DATA, marginal=marginal)
        assert model.log_joint(Sequences.of([[], [0]], SIZE)).isinf().tolist() == [True, False]


def test_two_latents_against_quadrature() -> None:
    def program(sequences: Any, lengths: Any) -> None:
        with pyro.plate("sequences", len(lengths)):
            z = pyro.sample("z", standard(len(lengths), 2).to_event(1))
            symbols(sequences, lengths, TASTE * z[:, :1] + OTHER * z[:, 1:])

    def truth(x: list[int]) -> float:
        z = torch.linspace(-8, 8, 401).double()
        shares = (TASTE * z[:, None, None] + OTHER * z[:, None]).softmax(-1)
        density = torch.outer(*[(-(z**2) / 2).exp()] * 2) * shares[..., x].prod(-1)
        return math.log(float(density.sum()) * (16 / 400) ** 2 / (2 * math.pi)) + log_length(x)

    def guide(sequences: Any, lengths: Any) -> None:
        inside = torch.arange(sequences.shape[1]) < lengths[:, None]
        with pyro.plate("sequences", len(lengths)):
            sums = [(weights[sequences] * inside).sum(1) for weights in (TASTE, OTHER)]
            pyro.sample("z", dist.Normal(torch.stack(sums, 1) / (2 + lengths[:, None]), 0.9).to_event(1))

    assert_ratios(as_model(program, DATA, marginal=Marginal(guide, num_points=2 * 24**2)), truth, 1e-3)
    assert_ratios(as_model(program, DATA, marginal=Marginal(num_points=32**2)), truth, 1e-3)
    assert_ratios(as_model(program, DATA, marginal=Marginal(num_points=64**2)), truth, 1e-6)


def test_shares_against_the_exact_marginal() -> None:
    concentration = torch.tensor([0.8, 1.5, 2.5]).double()

    def program(sequences: Any, lengths: Any) -> None:
        with pyro.plate("sequences", len(lengths)):
            shares = pyro.sample("shares", dist.Dirichlet(concentration))
            symbols(sequences, lengths, shares.log())

    def truth(x: list[int]) -> float:
        counts = torch.tensor([x.count(a) for a in range(SIZE)]).double()
        total = concentration.sum()
        terms = torch.lgamma(concentration + counts) - torch.lgamma(concentration)
        return float(torch.lgamma(total) - torch.lgamma(total + len(x)) + terms.sum()) + log_length(x)

    model = as_model(program, DATA, marginal=Marginal(num_points=2048))
    assert_ratios(model, truth, 0.02)
    # The stated error is about the true one.
    edits = zs(locations=1).edits(DATA)
    exact = torch.tensor([truth(y) for y in edits.apply(DATA).to_lists()]) - torch.tensor(  # type: ignore[arg-type]
        [truth(LISTS[owner]) for owner in edits.owner.tolist()]
    )
    error = float((model.log_ratio(DATA, edits) - exact).abs().max())
    assert error / 10 < model.ratio_error < 10 * error


def test_a_rate_against_the_exact_marginal() -> None:
    def program(sequences: Any, lengths: Any) -> None:
        count = len(lengths)
        with pyro.plate("sequences", count):
            rate = pyro.sample("rate", dist.Gamma(torch.full((count,), 3.0).double(), 1.5))
            pyro.sample("length", dist.Poisson(rate), obs=lengths.double())

    def truth(x: list[int]) -> float:  # negative binomial
        n = len(x)
        return math.lgamma(3.0 + n) - math.lgamma(n + 1) + 3.0 * math.log(1.5) - (3.0 + n) * math.log(2.5)

    assert_ratios(as_model(program, DATA, marginal=Marginal()), truth, 1e-6)


def test_enumerated_states_beside_a_latent() -> None:
    def program(sequences: Any, lengths: Any) -> None:
        with pyro.plate("sequences", len(lengths)):
            kind = pyro.sample(
                "kind", dist.Categorical(torch.tensor([0.3, 0.7]).double()), infer={"enumerate": "parallel"}
            )
            z = pyro.sample("z", dist.Normal(torch.tensor([-1.0, 1.0]).double()[kind], 0.5))
            symbols(sequences, lengths, TASTE * z[..., None])

    def truth(x: list[int]) -> float:
        def density(z: float) -> float:
            mixture = 0.3 * norm.pdf(z, -1.0, 0.5) + 0.7 * norm.pdf(z, 1.0, 0.5)
            return float(mixture) * likelihood(x, TASTE * z)

        return math.log(quad(density, -7, 7, epsabs=1e-12)[0]) + log_length(x)

    few = Sequences.of([[0, 2], [1], [0, 0, 1]], SIZE)
    assert_ratios(as_model(program, few, marginal=Marginal(num_points=32)), truth, 1e-5, few)


def test_sequences_that_are_longer_than_the_data_may_have_more_latents() -> None:
    def program(sequences: Any, lengths: Any) -> None:
        """A latent for each symbol but the first, so that the data show a single one."""
        with pyro.plate("sequences", len(lengths)):
            pyro.sample("x_0", dist.Categorical(torch.ones(SIZE).double()), obs=sequences[:, 0])
            for t in range(1, sequences.shape[1]):
                with poutine.mask(mask=t < lengths):
                    z = pyro.sample(f"z_{t}", standard(len(lengths)))
                    pyro.sample(f"x_{t}", dist.Categorical(logits=TASTE * z[:, None]), obs=sequences[:, t])
            pyro.sample("length", dist.Poisson(torch.tensor(4.0).double()), obs=lengths.double())

    model = as_model(program, Sequences.of([[0], [2, 1]], SIZE), marginal=Marginal())
    assert isinstance(model, MarginalProgram)
    assert len(model._points) == 400  # two latents with one more symbol
    longer = [[0, 1, 2, 0], [1, 1, 1], [2, 0]]
    each = [log_effect([symbol]) - log_length([symbol]) for symbol in range(SIZE)]
    expected = [sum(each[symbol] for symbol in x[1:]) - math.log(SIZE) + log_length(x) for x in longer]
    assert model.log_joint(Sequences.of(longer, SIZE)).tolist() == pytest.approx(expected, abs=0.1)


def test_longer_sequences_have_more_latents_where_lengths_count_them() -> None:
    def program(sequences: Any, lengths: Any) -> None:
        with pyro.plate("sequences", len(lengths)):
            for t in range(1, int(lengths.max())):
                with poutine.mask(mask=t < lengths):
                    z = pyro.sample(f"z_{t}", standard(len(lengths)))
                    pyro.sample(f"x_{t}", dist.Categorical(logits=TASTE * z[:, None]), obs=sequences[:, t])
            pyro.sample("length", dist.Poisson(torch.tensor(4.0).double()), obs=lengths.double())

    model = as_model(program, Sequences.of([[0], [2, 1]], SIZE), marginal=Marginal(num_points=64))
    assert isinstance(model, MarginalProgram)
    assert model._points.log_weights.tolist() == pytest.approx([-math.log(64)] * 64)  # no grid


def test_correlated_latents_against_independent_ones() -> None:
    def programs(joint: bool) -> Any:
        def program(sequences: Any, lengths: Any) -> None:
            count = len(lengths)
            with pyro.plate("sequences", count):
                zeros = torch.zeros(count, 2).double()
                both = (
                    dist.MultivariateNormal(zeros, torch.eye(2).double()) if joint else standard(count, 2).to_event(1)
                )
                z = pyro.sample("z", both)
                symbols(sequences, lengths, TASTE * z[:, :1] + OTHER * z[:, 1:])

        return program

    one, two = (as_model(programs(joint), DATA, marginal=Marginal(num_points=1024)) for joint in (True, False))
    torch.testing.assert_close(one.log_joint(DATA), two.log_joint(DATA), rtol=1e-12, atol=1e-12)


def test_a_latent_for_each_step() -> None:
    def program(sequences: Any, lengths: Any) -> None:
        with pyro.plate("sequences", len(lengths)):
            for t in range(sequences.shape[1]):
                with poutine.mask(mask=t < lengths):
                    z = pyro.sample(f"z_{t}", standard(len(lengths)))
                    pyro.sample(f"x_{t}", dist.Categorical(logits=TASTE * z[:, None]), obs=sequences[:, t])
            pyro.sample("length", dist.Poisson(torch.tensor(4.0).double()), obs=lengths.double())

    def guide(sequences: Any, lengths: Any) -> None:
        with pyro.plate("sequences", len(lengths)):
            for t in range(sequences.shape[1]):
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"z_{t}", dist.Normal(0.5 * TASTE[sequences[:, t]], 0.85))

    shares = [math.exp(log_effect([a]) - log_length([a])) for a in range(SIZE)]

    def truth(x: list[int]) -> float:
        return sum(math.log(shares[a]) for a in x) + log_length(x)

    assert_ratios(as_model(program, DATA, marginal=Marginal(num_points=4096)), truth, 0.05)
    proposed = as_model(program, DATA, marginal=Marginal(guide, num_points=1024))
    assert_ratios(proposed, truth, 0.01)
    # The width of a batch makes no difference.
    alone = [proposed.log_joint(DATA[[row]]).item() for row in range(len(DATA))]
    assert proposed.log_joint(DATA).tolist() == pytest.approx(alone, abs=1e-12)


def test_latents_that_depend_on_covariates() -> None:
    def program(sequences: Any, lengths: Any, spread: Any) -> None:
        with pyro.plate("sequences", len(lengths)):
            z = pyro.sample("z", dist.Normal(torch.zeros(len(lengths)).double(), spread))
            symbols(sequences, lengths, TASTE * z[:, None])

    spreads = [0.5, 1.0, 1.5, 2.0, 0.1]
    data = DATA.with_covariates(torch.tensor(spreads).double())
    model = as_model(program, data, marginal=Marginal(num_points=128))
    expected = [log_effect(x, spread) for x, spread in zip(LISTS, spreads, strict=True)]
    assert model.log_joint(data).tolist() == pytest.approx(expected, abs=1e-6)


def test_estimates_are_the_same_in_every_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    model = as_model(random_effect, DATA, marginal=Marginal(num_points=16))
    expected = model.log_joint(DATA)
    monkeypatch.setattr("pyro_ksd.models.programs.marginal.EVALUATED_SEQUENCES", 40)
    torch.testing.assert_close(model.log_joint(DATA), expected, rtol=1e-13, atol=1e-13)


def test_the_error_is_stated() -> None:
    with pytest.warns(UserWarning, match=r"the latents 'z' are integrated out with 64 points, so.*change by up to \d"):
        model = as_model(random_effect, DATA, marginal=Marginal())
    assert isinstance(model, MarginalProgram)
    assert 0 < model.ratio_error < 1e-7
    check = ksd_check(random_effect, DATA, marginal=Marginal(), num_bootstrap=20, progress=False)
    assert check["ksd"].attrs["ratio_error"] == pytest.approx(model.ratio_error)


@pytest.mark.parametrize(("count", "names"), [(3, "'z_0', 'z_1', 'z_2'"), (4, "'z_0', 'z_1', 'z_2', ...")])
def test_three_of_the_latents_are_named(count: int, names: str) -> None:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            effects = [pyro.sample(f"z_{index}", standard(len(lengths))) for index in range(count)]
            symbols(sequences, lengths, 0.1 * TASTE * sum(effects)[:, None])

    with pytest.warns(UserWarning, match=re.escape(f"the latents {names} are integrated out with 64 points")):
        as_model(program, DATA, marginal=Marginal(num_points=64))


def test_a_large_error_is_refused() -> None:
    def sharp(sequences: Any, lengths: Any) -> None:
        with pyro.plate("sequences", len(lengths)):
            z = pyro.sample("z", standard(len(lengths)))
            symbols(sequences, lengths, 40.0 * TASTE * z[:, None])

    message = "change by up to .*, expected at most 0.5; raise num_points in Marginal"
    with pytest.raises(ValueError, match=message):
        as_model(sharp, DATA, marginal=Marginal(num_points=4))


def test_an_edit_that_only_other_points_make_possible_is_an_error() -> None:
    """The four points end at 2.7, those that they are compared with go on."""

    def program(least: float) -> Any:
        def stepping(sequences: Any, lengths: Any) -> None:
            count = len(lengths)
            with pyro.plate("sequences", count):
                z = pyro.sample("z", standard(count))
                rare = torch.where(z > least, 0.5, 0.0)
                symbols(sequences, lengths, torch.stack([1 - rare, rare, torch.zeros(count)], 1).log())

        return stepping

    data = Sequences.of([[0, 0], [0], [0, 0, 0]], SIZE)
    with pytest.raises(ValueError, match=r"change by up to .*, expected at most 0\.5"):
        as_model(program(3.0), data, marginal=Marginal(num_points=4))
    # One that no points make possible does not count.
    found = as_model(program(9.0), data, marginal=Marginal(num_points=4))
    assert isinstance(found, MarginalProgram)
    assert found.ratio_error == pytest.approx(0.0, abs=1e-12)


def drawn(count: int, seed: int) -> Sequences:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        tokens, lengths = random_effect(None, None, num_sequences=count)
    return Sequences.of(tokens, SIZE, lengths=lengths)


@pytest.mark.parametrize("bootstrap", ["wild", "parametric"])
def test_checks_accept_the_true_model_and_reject_a_wrong_one(bootstrap: Any) -> None:
    data = drawn(40, 1)
    options: Any = {"marginal": Marginal(num_points=16), "bootstrap": bootstrap, "num_bootstrap": 60, "progress": False}
    assert float(ksd_check(random_effect, data, **options)["ksd"]["p_value_overall"]) > 0.05

    def weak(sequences: Any, lengths: Any, num_sequences: int | None = None) -> Any:
        return random_effect(sequences, lengths, num_sequences, strength=0.1)

    options = {**options, "bootstrap": "wild", "num_bootstrap": 200}
    assert float(ksd_check(weak, data, **options)["ksd"]["p_value_overall"]) <= 0.05


@pytest.mark.slow
def test_level() -> None:
    runs, level = 200, 0.05
    rejected = sum(
        float(
            ksd_check(
                random_effect,
                drawn(100, 1000 + run),
                marginal=Marginal(num_points=16),
                bootstrap="wild",
                num_bootstrap=99,
                seed=run,
                progress=False,
            )["ksd"]["p_value_overall"]
        )
        <= level
        for run in range(runs)
    )
    print(f"\nlocal latents integrated out, n = 100: {rejected} of {runs}")
    assert rejected <= binom.ppf(0.999, runs, level)


def hierarchical(sequences: Any, lengths: Any, num_sequences: int | None = None) -> Any:
    spread = pyro.sample("spread", dist.Gamma(torch.tensor(2.0).double(), 2.0))
    count = len(lengths) if num_sequences is None else num_sequences
    with pyro.plate("sequences", count):
        z = pyro.sample("z", dist.Normal(torch.zeros(count).double(), spread))
        if num_sequences is None:
            return symbols(sequences, lengths, TASTE * z[:, None])
        lengths = torch.poisson(torch.full((count,), 4.0)).long()
        return dist.Categorical(logits=TASTE * z[:, None]).sample((max(1, int(lengths.max())),)).T, lengths


def test_posterior_draws_of_the_other_sites() -> None:
    spreads = torch.tensor([0.5, 1.0, 1.5]).double()
    posterior = {"spread": spreads, "z": torch.zeros(3, len(DATA)).double()}  # values of latents are not used
    models = PosteriorModels(hierarchical, DATA, posterior, marginal=Marginal(num_points=96))
    expected = [[log_effect(x, float(spread)) for x in LISTS] for spread in spreads]
    torch.testing.assert_close(
        models.batch.log_joint(DATA), torch.tensor(expected, dtype=torch.double), rtol=1e-5, atol=1e-5
    )
    check = ksd_check(hierarchical, DATA, posterior=posterior, marginal=Marginal(num_points=32), progress=False)
    assert 0 < float(check["ksd"]["p_value_overall"]) <= 1
    with pytest.raises(ValueError, match=r"site 'z' belongs to each sequence.*marginal=Marginal\(\)"):
        ksd_check(hierarchical, DATA, posterior=posterior, progress=False)


def test_models_are_compared() -> None:
    def weak(sequences: Any, lengths: Any) -> None:
        random_effect(sequences, lengths, strength=0.1)

    found = ksd_compare(
        {"weak": weak, "true": random_effect},
        drawn(40, 3),
        marginal={"weak": Marginal(num_points=16), "true": Marginal(num_points=16)},
        progress=False,
    )
    assert found["ksd_compare"]["rank"].sel(view="overall").values.tolist() == [1, 0]
    with pytest.raises(ValueError, match=r"marginal: expected names of models, out of \['a', 'b'\], found \['c'\]"):
        ksd_compare({"a": weak, "b": weak}, DATA, marginal={"c": Marginal()}, progress=False)


def wrong_guide(kind: str) -> Any:
    def guide(sequences: Any, lengths: Any) -> None:
        count = len(DATA) if kind == "one size" else len(lengths)
        with pyro.plate("sequences", count):
            if kind != "nothing":
                pyro.sample("z", standard(count))
            if kind == "more":
                pyro.sample("w", standard(count))

    return guide


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("nothing", "expected a guide that proposes the latents ['z'] of the program, each inside a plate over"),
        ("more", "site 'w': found a local latent beside ['z'], which are all that the program has for the data; leave"),
        ("one size", "expected a guide that proposes the latents ['z'] of the program"),
    ],
)
def test_wrong_guides_are_named(kind: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        as_model(random_effect, DATA, marginal=Marginal(wrong_guide(kind)))


@pytest.mark.parametrize(
    ("loc", "scale"),
    [
        (0.0, 0.05),
        pytest.param(0.0, 0.5, marks=pytest.mark.slow),
        pytest.param(2.0, 0.3, marks=pytest.mark.slow),
        (20.0, 0.1),
        pytest.param(0.0, 30.0, marks=pytest.mark.slow),
    ],
)
def test_a_bad_guide_does_no_harm_in_silence(loc: float, scale: float) -> None:
    """A guide that is too narrow or in the wrong place covers hardly anything, and no point of its own shows it."""

    def guide(sequences: Any, lengths: Any) -> None:
        count = len(lengths)
        with pyro.plate("sequences", count):
            pyro.sample("z", dist.Normal(torch.full((count,), loc).double(), scale))

    model = as_model(random_effect, DATA, marginal=Marginal(guide))
    edits = zs().edits(DATA)
    exact = [log_effect(y) for y in edits.apply(DATA).to_lists()]  # type: ignore[arg-type]
    own = [log_effect(LISTS[owner]) for owner in edits.owner.tolist()]
    error = float((model.log_ratio(DATA, edits) - torch.tensor(exact) + torch.tensor(own)).abs().max())
    assert model.ratio_error is not None
    assert error < 10 * model.ratio_error + 1e-5


@pytest.mark.parametrize("fn", [lambda one: dist.Uniform(-one, one), lambda one: dist.Gamma(2 * one, one)])
def test_a_bounded_guide_leaves_the_rest_to_the_prior(fn: Any) -> None:
    def guide(sequences: Any, lengths: Any) -> None:
        count = len(lengths)
        with pyro.plate("sequences", count):
            pyro.sample("z", fn(torch.ones(count).double()))

    model = as_model(random_effect, DATA, marginal=Marginal(guide, num_points=2048))
    assert_ratios(model, log_effect, 0.01)


@pytest.mark.parametrize(("spread", "masked"), [(0.7, False), (0.7, True), (3.0, False)])
def test_a_guide_counts_where_the_program_does(spread: float, masked: bool) -> None:
    """Only sequences of more than two symbols have the latent; the guide need not say so."""

    def program(sequences: Any, lengths: Any) -> None:
        count, long = len(lengths), lengths > 2
        with pyro.plate("sequences", count):
            with poutine.mask(mask=long):
                z = pyro.sample("z", standard(count))
            symbols(sequences, lengths, TASTE * torch.where(long, z, 0.0)[:, None])

    def guide(sequences: Any, lengths: Any) -> None:
        with pyro.plate("sequences", len(lengths)), poutine.mask(mask=(lengths > 2) if masked else True):
            pyro.sample("z", dist.Normal(torch.zeros(len(lengths)).double(), spread))

    def truth(x: list[int]) -> float:
        return log_effect(x) if len(x) > 2 else log_length(x) - len(x) * math.log(SIZE)

    assert_ratios(as_model(program, DATA, marginal=Marginal(guide)), truth, 2e-3)


def test_priors_with_an_infinite_density_at_their_bound() -> None:
    def program(sequences: Any, lengths: Any) -> None:
        count = len(lengths)
        with pyro.plate("sequences", count):
            share = pyro.sample("share", dist.Beta(torch.full((count,), 0.5), 0.5))
            symbols(sequences, lengths, torch.stack([share, (1 - share) / 2, (1 - share) / 2], -1).log())

    def guide(sequences: Any, lengths: Any) -> None:
        with pyro.plate("sequences", len(lengths)):
            pyro.sample("share", dist.Beta(torch.full((len(lengths),), 2.0), 2.0))

    def truth(x: list[int]) -> float:
        ones, others = x.count(0), len(x) - x.count(0)
        beta = math.lgamma(0.5 + ones) + math.lgamma(0.5 + others) - math.lgamma(1.0 + len(x)) - math.log(math.pi)
        return beta - others * math.log(2) + log_length(x)

    assert_ratios(as_model(program, DATA, marginal=Marginal(guide)), truth, 0.02)


def test_a_guide_may_propose_what_is_impossible() -> None:
    def program(sequences: Any, lengths: Any) -> None:
        count = len(lengths)
        with pyro.plate("sequences", count):
            scale = pyro.sample("scale", dist.HalfNormal(torch.ones(count).double()))
            z = pyro.sample("z", dist.Normal(torch.zeros(count).double(), scale))
            symbols(sequences, lengths, TASTE * z[:, None])

    def guide(sequences: Any, lengths: Any) -> None:
        count = len(lengths)
        with pyro.plate("sequences", count):
            pyro.sample("scale", standard(count))  # half of the values are negative
            pyro.sample("z", standard(count))

    exact = as_model(program, DATA, marginal=Marginal(num_points=64**2))
    found = as_model(program, DATA, marginal=Marginal(guide, num_points=2 * 64**2))
    edits = zs().edits(DATA)
    torch.testing.assert_close(found.log_ratio(DATA, edits), exact.log_ratio(DATA, edits), rtol=0.02, atol=0.02)


def test_the_error_counts_insertions_and_deletions() -> None:
    def program(sequences: Any, lengths: Any) -> None:
        count = len(lengths)
        with pyro.plate("sequences", count):
            rate = pyro.sample("rate", dist.Gamma(torch.full((count,), 0.3).double(), 0.1))
            pyro.sample("length", dist.Poisson(rate), obs=lengths.double())

    data = Sequences.of([[0] * count for count in (0, 1, 1, 3, 9, 14)], 1)
    model = as_model(program, data, marginal=Marginal(num_points=16))
    exact = [
        math.lgamma(0.3 + n) - math.lgamma(n + 1) + 0.3 * math.log(0.1) - (0.3 + n) * math.log(1.1)
        for n in data.lengths.tolist()
    ]
    found = model.log_joint(data)
    error = float((found - found[0] - torch.tensor(exact) + exact[0]).abs().max())
    assert model.ratio_error is not None
    assert 0.01 < model.ratio_error < 0.5
    assert error < 10 * model.ratio_error


def test_the_error_is_that_of_the_worst_draw() -> None:
    posterior = {"spread": torch.tensor([0.1] + [12.0] * 9).double()}
    for order in (posterior, {"spread": posterior["spread"].flip(0)}):
        with pytest.raises(ValueError, match=r"change by up to .*, expected at most 0\.5"):
            ksd_check(hierarchical, DATA, posterior=order, marginal=Marginal(num_points=16), progress=False)


def test_refits_of_local_latents_are_refused() -> None:
    with pytest.raises(ValueError, match=r"refit: found the latents \['z'\] of each sequence, which RefitSVI does not"):
        ksd_check(hierarchical, DATA, refit=RefitSVI(num_steps=2), marginal=Marginal(), progress=False)


def test_a_guide_that_fails_is_named() -> None:
    def guide(sequences: Any, lengths: Any) -> None:
        raise RuntimeError("on purpose\nsecond line")

    with pytest.raises(ValueError, match=r"marginal: expected a guide that runs .* with RuntimeError: on purpose$"):
        as_model(random_effect, DATA, marginal=Marginal(guide))


def test_programs_without_local_latents_are_refused() -> None:
    def program(sequences: Any, lengths: Any) -> None:
        with pyro.plate("sequences", len(lengths)):
            pyro.factor("length", -2.0 * lengths)

    with pytest.raises(ValueError, match="marginal: expected a program with continuous latents inside the plate"):
        as_model(program, DATA, marginal=Marginal())
    with pytest.raises(ValueError, match="marginal: expected a program model"):
        as_model(lambda: None, DATA, marginal=Marginal())
    with pytest.raises(ValueError, match=r"sum it out if it is discrete.*if it is continuous, marginal=Marg"):
        as_model(random_effect, DATA)

    def discrete(sequences: Any, lengths: Any) -> None:
        with pyro.plate("sequences", len(lengths)):
            pyro.sample("z", standard(len(lengths)))
            pyro.sample("kind", dist.Categorical(torch.ones(2) / 2))
            pyro.factor("length", -2.0 * lengths)

    with pytest.raises(ValueError, match="site 'kind': found a latent inside the plate 'sequences'"):
        as_model(discrete, DATA, marginal=Marginal())


def test_a_latent_whose_size_changes_with_the_width_is_refused() -> None:
    def program(sequences: Any, lengths: Any) -> None:
        with pyro.plate("sequences", len(lengths)):
            z = pyro.sample("z", standard(*sequences.shape).to_event(1))
            inside = torch.arange(sequences.shape[1]) < lengths[:, None]
            pyro.factor("score", (z * inside).sum(1) - 2.0 * lengths)

    with pytest.raises(ValueError, match=r"site 'z': found a local latent of \d numbers for some sequences and of \d"):
        as_model(program, DATA, marginal=Marginal()).log_joint(Sequences.of([[0] * 9, [1]], SIZE))


def test_nothing_within_a_program_is_validated() -> None:
    seen: list[bool] = []

    def program(sequences: Any, lengths: Any) -> None:
        seen.append(pyro.settings.get("validate_distributions_torch"))
        random_effect(sequences, lengths)

    with pyro.validation_enabled(True):
        MarginalProgram(program, DATA, None, Marginal(num_points=4)).log_joint(DATA)
    assert seen
    assert not any(seen)


def test_options_are_checked() -> None:
    with pytest.raises(ValueError, match="num_points: expected"):
        Marginal(num_points=3)
    with pytest.raises(ValueError, match="guide: expected a Pyro guide"):
        Marginal("guide")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="marginal: expected how to integrate over local latents"):
        as_model(random_effect, DATA, marginal=64)  # type: ignore[arg-type]


def test_a_guide_for_a_latent_that_depends_on_an_enumerated_state_is_refused() -> None:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            mood = pyro.sample("mood", dist.Categorical(torch.ones(2).double()), infer={"enumerate": "parallel"})
            z = pyro.sample("z", dist.Normal(torch.tensor([-1.0, 1.0]).double()[mood], 1.0))
            symbols(sequences, lengths, TASTE * z[..., None])

    def guide(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            pyro.sample("z", standard(len(lengths)))

    with pytest.raises(
        ValueError, match=r"marginal: site 'z': found values of shape .* in the guide, expected .*; if the"
    ):
        as_model(program, DATA, marginal=Marginal(guide))
