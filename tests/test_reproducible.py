# SPDX-License-Identifier: Apache-2.0
"""The same seed gives the same result, and nothing of the user's session changes, whatever the user's code does."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyro
import pyro.distributions as dist
import pytest
import torch
import xarray as xr
from pyro import poutine, settings
from torch import Tensor

from pyro_ksd import default_views, find_view, ksd_check, ksd_compare, power, repair, split
from pyro_ksd.checks.baselines import likelihood_ratio_check, mmd_check
from pyro_ksd.edits import RandomReplacements, sparse_zs
from pyro_ksd.examples import random_walk
from pyro_ksd.fit_tests import goodness_of_fit, posterior_predictive
from pyro_ksd.models import (
    AutoregressiveModel,
    IndependentSequence,
    LoopProgram,
    Marginal,
    RefitSVI,
    as_model,
    fit_markov,
    with_sampler,
)
from pyro_ksd.models.posterior.posterior_models import PosteriorModels
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein import zanella_sample

DATA = Sequences.of([[0, 1], [1], [0, 0, 1], [1, 1], [0], [1, 0, 0], [0, 1, 1], [1, 0]], alphabet=2)
OPTIONS: dict[str, Any] = {"num_bootstrap": 5, "views": "content-1", "progress": False}


def mess_up(*, seeds: bool = True) -> None:
    """Does to the session whatever a program can."""
    np.random.rand(3)  # noqa: NPY002
    random.random()
    torch.rand(2)
    torch.set_default_dtype(torch.double)
    pyro.param("leak", torch.ones(1))
    pyro.enable_validation(False)
    settings.set(cholesky_relative_jitter=8.0)
    if seeds:
        pyro.set_rng_seed(3)
        torch.manual_seed(1)
        np.random.seed(2)  # noqa: NPY002
        random.seed(3)


def drawn_rows(num_sequences: int) -> list[list[int]]:
    """Sequences that take random numbers of all kinds."""
    lengths = np.random.geometric(0.5, num_sequences)  # noqa: NPY002
    return [[int(torch.rand(()) < 0.5) if random.random() < 0.5 else 1 for _ in range(length)] for length in lengths]


def steps(sequences: Tensor, lengths: Tensor, one: Any) -> None:
    probs = torch.as_tensor(one, dtype=torch.double)
    with pyro.plate("sequences", len(lengths)):
        for t in range(sequences.shape[1]):
            with poutine.mask(mask=t < lengths):
                pyro.sample(f"x_{t}", dist.Bernoulli(probs), obs=sequences[:, t].double())
                pyro.sample(f"stop_{t}", dist.Bernoulli(torch.tensor(0.5)), obs=(lengths == t + 1).float())


def program(sequences: Tensor | None = None, lengths: Tensor | None = None, num_sequences: int | None = None) -> Any:
    if num_sequences is not None:
        rows = drawn_rows(num_sequences)
        mess_up(seeds=False)
        return Sequences.of(rows, alphabet=2)
    assert sequences is not None
    assert lengths is not None
    mess_up()
    steps(sequences, lengths, 0.75)
    mess_up()
    return None


def given_one(sequences: Tensor | None = None, lengths: Tensor | None = None, num_sequences: int | None = None) -> Any:
    one = pyro.sample("one", dist.Beta(2.0, 2.0))
    if num_sequences is not None:
        return program(num_sequences=num_sequences)
    assert sequences is not None
    assert lengths is not None
    mess_up()
    steps(sequences, lengths, one)
    mess_up()
    return None


def guide(sequences: Tensor, lengths: Tensor) -> None:
    pyro.sample("one", dist.Beta(3.0 + np.random.rand(), 2.0 + random.random()))  # noqa: NPY002
    mess_up(seeds=False)
    del pyro.get_param_store()["leak"]  # a guide that makes parameters was never trained


def with_latent(sequences: Tensor, lengths: Tensor) -> None:
    mess_up()
    with pyro.plate("sequences", len(lengths)):
        level = pyro.sample("level", dist.Normal(0.0, 1.0))
        for t in range(sequences.shape[1]):
            with poutine.mask(mask=t < lengths):
                pyro.sample(f"x_{t}", dist.Bernoulli(logits=level), obs=sequences[:, t].to(level.dtype))
                pyro.sample(f"stop_{t}", dist.Bernoulli(torch.tensor(0.5)), obs=(lengths == t + 1).float())
    mess_up()


def latent_guide(sequences: Tensor, lengths: Tensor) -> None:
    mess_up()
    with pyro.plate("sequences", len(lengths)):
        pyro.sample("level", dist.Normal(0.0, torch.tensor(1.5)))
    mess_up()


def loop(branches: bool = False) -> Callable[[], None]:
    def program() -> None:
        stop = torch.tensor(0.0)
        one = torch.tensor(0.75)
        t = 0
        while not stop:
            x = pyro.sample(f"x_{t}", dist.Bernoulli(one))
            if branches and int(x) == 1:
                one = torch.tensor(0.5)
            stop = pyro.sample(f"stop_{t}", dist.Bernoulli(torch.tensor(0.5)))
            t += 1
        mess_up(seeds=False)

    return program


def sampler(num_sequences: int, generator: torch.Generator) -> Sequences:
    rows = drawn_rows(num_sequences)
    mess_up(seeds=False)
    return Sequences.of(rows, alphabet=2)


def refit(model: Any, data: Sequences) -> Any:
    pseudocount = 1 + np.random.rand() + random.random() + float(torch.rand(()))  # noqa: NPY002
    mess_up()
    return fit_markov(data, 1, pseudocount=pseudocount)


def network(codes: Tensor) -> Tensor:
    mess_up()
    torch.rand(1)  # not used, as in a layer that is switched off
    return torch.tensor([0.2, 0.3, 0.1]).expand(*codes.shape, 3)


class Messy(torch.distributions.Distribution):
    """A distribution over padded sequences that draws with numpy."""

    arg_constraints = {}  # noqa: RUF012

    def __init__(self) -> None:
        super().__init__(event_shape=torch.Size([20]), validate_args=False)

    def log_prob(self, value: Tensor) -> Tensor:
        mess_up()
        torch.rand(1)
        return -1.5 * (value >= 0).sum(-1)

    def sample(self, sample_shape: torch.Size = torch.Size()) -> Tensor:  # noqa: B008
        rows = Sequences.of(drawn_rows(sample_shape[0]), alphabet=2).padded(-1)
        mess_up(seeds=False)
        return torch.nn.functional.pad(rows[:, :20], (0, max(0, 20 - rows.shape[1])), value=-1)


class Duck:
    """An object with the methods of a model."""

    alphabet_size = 2
    defines_lengths = True

    def log_joint(self, sequences: Sequences) -> Tensor:
        mess_up()
        return -1.5 * sequences.lengths.double()

    def log_ratio(self, sequences: Sequences, edits: Any) -> Tensor:
        mess_up()
        return -1.5 * (edits.new_lengths(sequences.lengths) - sequences.lengths[edits.owner]).double()

    def draw(self, num_sequences: int, generator: torch.Generator | None = None) -> Sequences:
        return sampler(num_sequences, torch.Generator())


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def checked(model: Any, seed: int, **options: Any) -> Any:
    return ksd_check(model, DATA, seed=seed, **(OPTIONS | options))


def network_model() -> AutoregressiveModel:
    return AutoregressiveModel(network, prompt=[0], end=2, max_length=6)


def ended() -> Sequences:
    return Sequences.of([[*row, 2] for row in DATA.to_lists()], alphabet=3)


ENTRIES: dict[str, Callable[[int], Any]] = {
    "log_joint": lambda seed: as_model(program, DATA).log_joint(DATA),
    "draw": lambda seed: as_model(program, DATA).draw(20, generator(seed)),
    "check": lambda seed: checked(program, seed),
    "wild check": lambda seed: checked(program, seed, bootstrap="wild"),
    "check of a loop": lambda seed: checked(loop(), seed),
    "draw of a loop": lambda seed: LoopProgram(loop(), 2).draw(20, generator(seed)),
    "check of a loop with branches": lambda seed: checked(loop(branches=True), seed, bootstrap="parametric"),
    "draw of a loop with branches": lambda seed: LoopProgram(loop(branches=True), 2).draw(20, generator(seed)),
    "sampler": lambda seed: checked(random_walk(2), seed, sampler=sampler),
    "draw of a sampler": lambda seed: with_sampler(random_walk(2), sampler).draw(20, generator(seed)),
    "refit": lambda seed: checked(fit_markov(DATA, 1, pseudocount=1.0), seed, refit=refit),
    "RefitSVI": lambda seed: RefitSVI(num_steps=2, seed=seed)(given_one, DATA)["one"],
    "guide": lambda seed: checked(given_one, seed, posterior=guide),
    "marginal": lambda seed: checked(with_latent, seed, marginal=Marginal(num_points=64), bootstrap="wild"),
    "guided marginal": lambda seed: checked(
        with_latent, seed, marginal=Marginal(latent_guide, num_points=64), bootstrap="wild"
    ),
    "network": lambda seed: ksd_check(network_model(), ended(), seed=seed, **OPTIONS),
    "draw of a network": lambda seed: network_model().draw(20, generator(seed)),
    "distribution": lambda seed: checked(Messy(), seed),
    "draw of a distribution": lambda seed: as_model(Messy(), DATA).draw(20, generator(seed)),
    "object": lambda seed: checked(Duck(), seed),
    "table": lambda seed: checked(program, seed, order=1),
    "zanella": lambda seed: (
        zanella_sample(as_model(program, DATA), 5, start=DATA, time=2.0, seed=seed, progress=False).sequences
    ),
    "mmd": lambda seed: mmd_check(program, DATA, num_bootstrap=5, seed=seed, progress=False),
    "likelihood ratio": lambda seed: likelihood_ratio_check(program, DATA, num_bootstrap=5, seed=seed, progress=False),
    "comparison": lambda seed: ksd_compare({"one": program, "other": random_walk(2)}, DATA, progress=False),
    "power": lambda seed: power(
        as_model(program, DATA), random_walk(2), 4, runs=3, seed=seed, **(OPTIONS | {"num_bootstrap": 19})
    ),
    "find_view": lambda seed: find_view(program, DATA, progress=False).kernel.meaning,
    "repair": lambda seed: repair(as_model(program, DATA), Sequences.cat([DATA] * 4)),
}

WITHOUT_SEED = {"log_joint", "comparison", "find_view", "repair", "power", "guide", "RefitSVI"}
"""Results that hardly depend on the seed, or not at all."""


def plain(result: Any) -> Any:
    """A result as numbers that can be compared."""
    if isinstance(result, xr.DataTree):
        return {name: plain(group.to_dataset()) for name, group in result.children.items()}
    if isinstance(result, xr.Dataset):
        return {str(name): plain(values.values) for name, values in result.data_vars.items()}
    if isinstance(result, Sequences):
        return result.to_lists()
    return str(result.tolist() if isinstance(result, Tensor | np.ndarray) else result)  # NaN is not equal to itself


def session() -> Any:
    store = pyro.get_param_store()
    return (
        torch.get_rng_state().tolist(),
        np.random.get_state()[1].tolist(),  # noqa: NPY002
        np.random.get_state()[2],  # noqa: NPY002
        random.getstate(),
        torch.get_default_dtype(),
        {name: value.item() for name, value in store.items()},
        settings.get(),
        len(poutine.runtime._PYRO_STACK),
        torch.is_grad_enabled(),
    )


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ENTRIES)
def test_the_seed_alone_decides_and_the_session_stays(name: str) -> None:
    pyro.param("mine", torch.tensor(2.0))
    found = []
    for outside, seed in ((1, 5), (2, 5), (1, 6)):
        torch.manual_seed(outside)
        np.random.seed(outside)  # noqa: NPY002
        random.seed(outside)
        before = session()
        found.append(plain(ENTRIES[name](seed)))
        assert session() == before
    assert found[0] == found[1]
    if name not in WITHOUT_SEED:
        assert found[0] != found[2]


def test_a_loop_that_sets_a_seed_cannot_be_drawn_from() -> None:
    def program() -> None:
        pyro.set_rng_seed(0)
        loop()()

    before = session()
    with pytest.raises(ValueError, match="draw: expected other random numbers in each run of the program"):
        LoopProgram(program, 2).draw(5, generator(0))
    assert session() == before


def test_a_network_that_draws_its_logits_is_refused() -> None:
    def noisy(codes: Tensor) -> Tensor:
        return torch.rand(*codes.shape, 3)

    before = session()
    with pytest.raises(ValueError, match="the network draws random numbers when it scores sequences"):
        AutoregressiveModel(noisy, prompt=[0], end=2, max_length=6)
    assert session() == before


# ---------------------------------------------------------------------------------- seeds


def untouched(*arguments: Any, **options: Any) -> Any:
    raise AssertionError("the model was used although the seed is wrong")


class Untouched(Duck):
    log_joint = log_ratio = draw = untouched  # type: ignore[assignment]


def posterior_models() -> PosteriorModels:
    return PosteriorModels(given_one, DATA, {"one": torch.tensor([0.3, 0.5, 0.6])})


VIEWS = default_views()[:1]
SEEDED: dict[str, Callable[[Any], Any]] = {
    "ksd_check": lambda seed: ksd_check(Untouched(), DATA, seed=seed),
    "power": lambda seed: power(Untouched(), Untouched(), 5, seed=seed),
    "mmd_check": lambda seed: mmd_check(Untouched(), DATA, seed=seed),
    "likelihood_ratio_check": lambda seed: likelihood_ratio_check(Untouched(), DATA, seed=seed),
    "split": lambda seed: split(DATA, 0.5, seed=seed),
    "zanella_sample": lambda seed: zanella_sample(Untouched(), 5, start=DATA, time=1.0, seed=seed),
    "goodness_of_fit": lambda seed: goodness_of_fit(Untouched(), DATA, VIEWS, seed=seed),
    "posterior_predictive": lambda seed: posterior_predictive(posterior_models(), DATA, VIEWS, seed=seed),
    "RefitSVI": lambda seed: RefitSVI(seed=seed),
    "RandomReplacements": lambda seed: RandomReplacements(3, seed),
    "sparse_zs": lambda seed: sparse_zs(torch.tensor([0]), 2, seed),
}


@pytest.mark.parametrize("name", SEEDED)
@pytest.mark.parametrize("wrong", [True, 0.5, -1, 2**63, None])
def test_a_wrong_seed_is_refused_before_anything_is_done(name: str, wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"^seed: expected an integer from 0 to \d+ or a torch.Generator, found"):
        SEEDED[name](wrong)


@pytest.mark.parametrize("name", ["check", "mmd", "likelihood ratio"])
def test_the_seed_may_be_any_integer_or_a_generator_and_is_recorded(name: str) -> None:
    entry: Callable[[Any], Any] = ENTRIES[name]
    expected = entry(3)
    for seed in (np.int64(3), torch.tensor(3)):
        found = entry(seed)
        assert plain(found) == plain(expected)
        assert found["ksd"].attrs["seed"] == 3
        assert type(found["ksd"].attrs["seed"]) is int
    drawn = entry(generator(3))
    assert plain(entry(drawn["ksd"].attrs["seed"])) == plain(drawn) == plain(entry(generator(3)))
    assert plain(drawn) != plain(expected)


def test_the_seed_of_a_power_study_is_recorded() -> None:
    table = power(random_walk(2), random_walk(2), 4, runs=1, seed=np.int8(7), **(OPTIONS | {"num_bootstrap": 19}))
    assert table.attrs["seed"] == 7


# ---------------------------------------------------------------------------------- threads

POISSON = IndependentSequence(torch.tensor([0.4, 0.6]).double(), dist.Poisson(torch.tensor(2.0).double()), minimum=1)
ONES = torch.tensor([0.3, 0.5, 0.6])
IN_THREADS: list[Callable[[], Any]] = [
    lambda: checked(program, 1),
    lambda: checked(loop(), 2),
    lambda: checked(random_walk(2), 3),
    lambda: checked(POISSON, 4),
    lambda: checked(given_one, 5, posterior={"one": ONES}),
    lambda: as_model(program, DATA).log_joint(DATA),
]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("threads", [2, 4])
def test_checks_in_threads_give_what_they_give_alone(threads: int) -> None:
    expected = [plain(run()) for run in IN_THREADS]
    torch.manual_seed(0)
    before = session()
    with ThreadPoolExecutor(threads) as pool:
        found = list(pool.map(lambda run: plain(run()), IN_THREADS * 2))
    assert found == expected * 2
    assert session() == before
