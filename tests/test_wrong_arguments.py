# SPDX-License-Identifier: Apache-2.0
"""Wrong arguments of the public functions: each gives an error of this package that names the argument."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pyro
import pyro.distributions as dist
import pytest
import torch
import xarray as xr
from synthetic import made_up_check
from synthetic_comparison import THREE, made_up_comparison
from torch import Tensor

import pyro_ksd
from pyro_ksd import (
    AutoregressiveModel,
    HiddenMarkovSequence,
    IndependentSequence,
    LinearChainMRF,
    MarkovSequence,
    Sequences,
    View,
    compare_table,
    default_views,
    extend,
    from_pyro,
    ksd_check,
    ksd_compare,
    likelihood_ratio_check,
    load,
    mmd_check,
    plot_check,
    plot_compare,
    plot_discrepancy,
    plot_gram,
    plot_ngrams,
    plot_null,
    plot_sequences,
    plot_views,
    split,
    summary,
    to_inference_data,
    verdict,
)
from pyro_ksd.common.option_checks import check_number
from pyro_ksd.common.random_numbers import seeded_generator
from pyro_ksd.edits import (
    BeforeEnd,
    CustomNeighborhood,
    DoubleSubstitutions,
    InsertionsDeletions,
    ListedReplacements,
    PrefixInsertionsDeletions,
    PrefixSubstitutions,
    Substitutions,
    Union,
    check_symmetric,
    is_connected,
    prefix_zs,
    zs,
)
from pyro_ksd.examples import random_walk
from pyro_ksd.fit_tests import (
    edit_shares,
    extent,
    goodness_of_fit,
    harmonic_p,
    localize,
    mean_localization,
    multinomial,
    p_value,
    parametric_bootstrap,
    posterior_predictive,
    predictive_p_value,
    rademacher,
    refitted_bootstrap,
    relative_fit,
    u_statistic,
    v_statistic,
    weighted_u_statistics,
    wild_bootstrap,
)
from pyro_ksd.fit_tests.relative import RowSums, jackknife_error, leave_one_out
from pyro_ksd.kernels import (
    ContiguousKernel,
    CyclicGaussianKernel,
    DiracKernel,
    EmbeddingKernel,
    EndKernel,
    GapWeightedKernel,
    HammingKernel,
    IMQHammingKernel,
    LandmarkKernel,
    LengthKernel,
    PositionKernel,
    RepeatsKernel,
    SkipKernel,
    StartKernel,
)
from pyro_ksd.kernels.stein_matrices import GramMatrix
from pyro_ksd.models import (
    LoopProgram,
    Marginal,
    RefitHiddenMarkov,
    RefitMarkov,
    RefitSVI,
    RepetitionPenalty,
    TabulatedModel,
    Temperature,
    TopK,
    TopP,
    VectorizedProgram,
    as_model,
    constrain,
    fit_hidden_markov,
    fit_markov,
    with_sampler,
)
from pyro_ksd.models.posterior.posterior_models import PosteriorModels
from pyro_ksd.results import common_groups, predictive_datatree, to_datatree
from pyro_ksd.sequences.covariates import Covariates
from pyro_ksd.stein import (
    HeatBathOperator,
    Signs,
    TailBlockOperator,
    ZanellaOperator,
    as_balancing,
    barker,
    metropolis,
    mpf,
    stein_matrices,
    zanella_sample,
)
from pyro_ksd.stein.assembly import assemble
from pyro_ksd.stein.mixing import effective_sample_size, split_rhat
from pyro_ksd.stein.weighting import weighted_edits

PACKAGE = Path(pyro_ksd.__file__).parent
WORDS = ["aabb", "bbccc", "caa", "abbc"]
DATA = Sequences.of(WORDS)
OTHER = Sequences.of(["ab", "ba", "a"])  # of another alphabet
WALK = random_walk(3)
PROMPTS = Covariates.of([[0], [1]], 2)
MARGINALS = ["prior", 3, {}, True, Marginal, Marginal(), lambda sequences, lengths: None]
VIEWS = default_views()
MATRIX = GramMatrix(torch.eye(4, dtype=torch.double))
GENERATOR = torch.Generator().manual_seed(0)
CHECK = made_up_check(gram=False)
COMPARISON = made_up_comparison(THREE)
EMPTY = xr.DataTree()
POSTERIOR = xr.DataTree.from_dict({"posterior": xr.Dataset({"stop": (("chain", "draw"), [[0.3, 0.4]])})})
HOLLOW = xr.DataTree.from_dict({"ksd": xr.Dataset(), "ksd_null": xr.Dataset(), "ksd_compare": xr.Dataset()})
COIN = torch.tensor([0.5, 0.5])
FLIPS = torch.full((2, 2), 0.5)
CHAIN = torch.tensor([[0.4, 0.4, 0.2], [0.4, 0.4, 0.2], [0.5, 0.5, 0.0]])
META = torch.empty(3, 3, device="meta")
COMPLEX = torch.ones(3, 3, dtype=torch.cfloat)
NAN = math.nan


def program(x: Tensor | None = None, num_sequences: int | None = None) -> Any:
    stop = pyro.sample("stop", dist.Beta(2.0, 2.0))
    chain = MarkovSequence.from_transitions(torch.ones(3) / 3, torch.ones(3, 3) / 3, stop)
    with pyro.plate("sequences", num_sequences if x is None else len(x)):
        return pyro.sample("x", chain, obs=x)


def loop() -> None:
    stop, t = False, 0
    while not stop:
        pyro.sample(f"x_{t}", dist.Categorical(torch.ones(3) / 3))
        stop = bool(pyro.sample(f"stop_{t}", dist.Bernoulli(0.2)))
        t += 1


def hierarchy() -> None:
    rate, stop, t = pyro.sample("stop", dist.Beta(2.0, 2.0)), False, 0
    while not stop:
        pyro.sample(f"x_{t}", dist.Categorical(torch.ones(3) / 3))
        stop = bool(pyro.sample(f"stop_{t}", dist.Bernoulli(rate)))
        t += 1


def network(codes: Tensor) -> Tensor:
    return torch.zeros(*codes.shape, 4)


class LanguageModel:
    device = torch.device("cpu")

    def __call__(self, input_ids: Tensor, **options: Any) -> Any:
        return SimpleNamespace(logits=network(input_ids))


def codes(sequences: Sequences, top: int) -> Tensor:
    return torch.arange(2).expand(len(sequences), sequences.width + 1, 2)


def sampler(num_sequences: int, generator: torch.Generator) -> Sequences:
    return WALK.draw(num_sequences, generator)


def compared(models: Any, model: Any = WALK, **options: Any) -> Any:
    """Compares models, of which one may be wrong."""
    return ksd_compare(models if model is WALK else models | {"c": model}, **options)


def draws() -> PosteriorModels:
    return PosteriorModels(program, DATA, {"stop": torch.tensor([0.3, 0.4])})


def vectorized(**arguments: Any) -> VectorizedProgram:
    parameters = {"stop": torch.tensor(0.3)}
    return VectorizedProgram(**({"program": program, "example": DATA, "parameters": parameters} | arguments))


def with_defaults(function: Callable[..., Any], /, **defaults: Any) -> Callable[..., Any]:
    """The function with arguments that are right, unless others are passed."""
    return lambda **arguments: function(**(defaults | arguments))


goodness = with_defaults(goodness_of_fit, model=WALK, sequences=DATA, views=VIEWS, num_bootstrap=5)
FOUND = goodness()
PLACES = localize(FOUND)
SIZE = extent(FOUND, PLACES, DATA, None)
PREDICTED = posterior_predictive(draws(), DATA, VIEWS)
MATRICES = [FOUND.visits.whole(view)[0] for view in VIEWS]
CHUNK = next(FOUND.visits.chunks(VIEWS[0].operator.neighborhood)).weighted(VIEWS[0].operator)
SCORED = next(FOUND.visits.chunks(VIEWS[0].operator.neighborhood)).scored

NUMBERS: list[Any] = [None, "3", 2.5, NAN, True, -1, [2], torch.tensor(2), int]
"""What is no number of things."""
COUNTS: list[Any] = [*NUMBERS, 0]
LEVELS: list[Any] = ["high", None, True, 0, 1, -0.05, 5, NAN, [0.05], torch.tensor(0.05), 0.05j]
FLAGS: list[Any] = ["yes", None, 1, 0.0, [True], torch.tensor(True)]
SEEDS: list[Any] = [None, "0", 0.5, True, -1, 2**70, [1], np.random.default_rng(0)]
CHECKS: list[Any] = [None, "check.nc", {}, 3, EMPTY, POSTERIOR, HOLLOW, COMPARISON, xr.DataTree, xr.Dataset()]
FIGURES: dict[str, list[Any]] = {
    "ax": ["left", 3, [1, 2], plt.Figure],
    "figsize": ["large", 5, (1,), (1, "a"), (-1, 2), (NAN, 1), (0, 0)],
    "backend_kwargs": ["dpi", 3, {"colour": 1}, {3: 4}],
}
NEIGHBORHOODS: list[Any] = ["zs", zs, Substitutions, 3, [], {}, False, VIEWS[0]]
BALANCINGS: list[Any] = [
    "parker", None, 3, [], barker(torch.zeros(3)), math.exp, torch.exp, lambda r: None, lambda r: "a", lambda r, s: r,
]  # fmt: skip
FUNCTIONS: list[Any] = [None, "yes", 3, [], {}, lambda: None]
MODELS: list[Any] = [None, "markov", 3, [], {}, MarkovSequence, object(), torch.zeros(2), np.zeros(2)]
SEQUENCES: list[Any] = [None, "abc", 3, WORDS, torch.zeros(2, 2), Sequences]
BOOTSTRAPS: list[Any] = ["tame", None, True, 3, ["wild"], "WILD"]
VIEW_LISTS: list[Any] = [None, [], 3, [None], ["length"], View, [View]]
GENERATORS: list[Any] = [0, "0", np.random.default_rng(0), torch.Generator]
NO_SHARES: list[Any] = ["a", None, NAN, -1.0, 1j, {}, torch.tensor(2), torch.rand(3), META, object()]
PROBABILITIES: list[Any] = [
    None, "abc", 0.5, [], {}, [["a"]], [[0.5], [0.5, 0.5]], torch.tensor(0.5), torch.rand(3, 0), -FLIPS, 2 * FLIPS,
    NAN * FLIPS, torch.eye(3).long(), torch.eye(3).bool(), COMPLEX, META, np.array(["a"]), np.eye(3) + 1j,
]  # fmt: skip

Arguments = Mapping[str, list[Any]]

WRONG: dict[str, tuple[Callable[..., Any], Arguments]] = {
    "ksd_check": (
        with_defaults(ksd_check, model=WALK, data=WORDS, num_bootstrap=5, progress=False),
        {
            "model": [*MODELS, dist.Normal(0.0, 1.0), dist.Categorical],
            "data": [None, 3, "abc", [], {}, WALK, ksd_check, ["", ""], [None], [1, 2], [[0.5]], ["abcd"] * 3, OTHER],
            "views": [
                3, [], [None], "lengths", ["start", "stop"], {"length": 1}, View, [View], [3], ["start", "start"],
            ],
            "neighborhood": NEIGHBORHOODS,
            "balancing": [value for value in BALANCINGS if value is not None],
            "by": [3, "group", ["group"], {}, lambda covariates: None],
            "order": [value for value in [*COUNTS, 40] if value is not None],
            "marginal": MARGINALS,
            "sampler": ["yes", 3, {}, lambda: None, lambda number: DATA, Sequences],
            "refit": ["yes", 3, True, {}, RefitMarkov, lambda data: WALK],
            "bootstrap": BOOTSTRAPS,
            "num_bootstrap": COUNTS,
            "level": LEVELS,
            "tolerance": [value for value in LEVELS if value is not None and value != 0],
            "gram": FLAGS,
            "seed": SEEDS,
            "progress": FLAGS,
        },
    ),
    "ksd_check of a program": (
        with_defaults(ksd_check, model=program, data=DATA, num_bootstrap=5, progress=False),
        {
            "posterior": [
                "draws", 3, [], {}, EMPTY, CHECK, True, object(), torch.rand(3), {"start": torch.rand(3)},
                {3: torch.rand(3)}, {"stop": "a"}, {"stop": META[0]}, {"stop": None}, {"stop": torch.full((3,), 2.0)},
                {"stop": torch.tensor([0.5, NAN])}, {"stop": torch.rand(0)}, {"x": torch.ones(3, 4, 5)}, len,
                MarkovSequence,
            ],
            "parameters": [
                "stop", 3, [0.5], {"start": torch.tensor(0.5)}, {"stop": torch.rand(3)}, {"stop": "a"}, {"stop": None},
                {"stop": 2.0}, {"stop": NAN}, {"x": torch.ones(4, 5)},
            ],
        },
    ),
    "ksd_compare": (
        with_defaults(compared, models={"a": WALK, "b": random_walk(3, hold=0.5)}, data=WORDS, progress=False),
        {
            "models": [None, "ab", WALK, [WALK, WALK], {}, {"a": WALK}, {"a": WALK, 3: WALK}],
            "model": [None, "markov", MarkovSequence],
            "data": [None, 3, "abc", [], {}, WALK, DATA[:2]],
            "views": [3, [], [None], "lengths", {"length": 1}, View, ["start", "start"]],
            "neighborhood": NEIGHBORHOODS,
            "balancing": [value for value in BALANCINGS if value is not None],
            "parameters": ["stop", 3, [0.5], {"c": {}}, {"a": 3}],
            "order": [value for value in [*COUNTS, {"c": 1}, {"a": "1"}] if value is not None],
            "marginal": ["prior", 3, {"c": Marginal()}, {"a": 3}, {"a": Marginal()}, Marginal()],
            "level": LEVELS,
            "progress": FLAGS,
        },
    ),
    "mmd_check": (
        with_defaults(mmd_check, model=WALK, data=WORDS, num_bootstrap=5, progress=False),
        {
            "model": MODELS,
            "data": [None, 3, "abc", [], WALK],
            "kernels": ["hamming", 3, [], {}, HammingKernel(), {"a": HammingKernel}, {3: HammingKernel()}],
            "num_samples": [value for value in [*COUNTS, 1] if value is not None],
            "sampler": ["yes", 3, {}, lambda: None],
            "bootstrap": BOOTSTRAPS,
            "num_bootstrap": COUNTS,
            "level": LEVELS,
            "seed": SEEDS,
            "progress": FLAGS,
        },
    ),
    "likelihood_ratio_check": (
        with_defaults(likelihood_ratio_check, model=WALK, data=WORDS, num_bootstrap=5, progress=False),
        {
            "model": MODELS,
            "data": [None, 3, "abc", [], WALK],
            "alternative": [None, "order", 2.5, True, 0, [], MarkovSequence],
            "pseudocount": [None, "0", -1, NAN, math.inf, True, [1]],
            "sampler": ["yes", 3, {}, lambda: None],
            "num_bootstrap": COUNTS,
            "level": LEVELS,
            "seed": SEEDS,
            "progress": FLAGS,
        },
    ),
    "split": (
        with_defaults(split, data=WORDS),
        {
            "data": [None, 3, "abc", [], {}, [3], COMPLEX, META, WALK],
            "fraction": ["half", None, 0, 1, 2, -0.5, True, [0.5], 0.5j, NAN, math.inf],
            "seed": SEEDS,
        },
    ),
    "Sequences": (
        with_defaults(Sequences, tokens=DATA.tokens, lengths=DATA.lengths, alphabet=3),
        {
            "tokens": [
                None, [[0]], "ab", torch.rand(4, 5), torch.zeros(4).long(), np.zeros((4, 5), dtype=int),
                9 * torch.ones(4, 5).long(), -torch.ones(4, 5).long(),
            ],
            "lengths": [
                None, [1, 2], torch.rand(4), torch.ones(4, 1).long(), META, torch.tensor([-1, 1, 1, 1]),
                torch.tensor([9, 1, 1, 1]),
            ],
            "alphabet": [0, -1, (), ("a", "a", "b"), None, 2.5, NAN, True, 2**80, Sequences],
        },
    ),
    "Sequences.of": (
        with_defaults(Sequences.of, data=WORDS),
        {
            "data": [
                None, 3, "abc", b"abc", {}, [], [None], [3], [[0.5]], [[NAN]], torch.rand(2, 2), np.zeros((2, 2, 2, 2)),
                META, META.long(), [[0.5j]], [META[0].long()], np.zeros((2, 2), dtype="datetime64[s]"),
            ],
            "lengths": [3, [1], "ab"],
            "pad": [-1, "a"],
            "alphabet": [
                0, -1, 2.5, "", "ab", "aabc", [[1], [2]], DATA.tokens, True, NAN, object(), Sequences, {}, 1e9, 3,
            ],
        },
    ),
    "Sequences.of an array": (
        with_defaults(Sequences.of, data=torch.tensor([[0, 1], [1, -1]]), pad=-1),
        {
            "pad": ["a", None, 0.5, True, [1], torch.tensor([1, 2]), NAN, 2**70],
            "lengths": [
                3, [1], [1, 2, 3], [0.5, 1], torch.rand(2), [[1], [1]], 2 + 1j, "ab", [None, 1], META[0, :2], {"a": 1},
                object(), [-1, 1], [9, 1], ["a", "b"], [10**30, 1],
            ],
            "alphabet": [1, [0], ["a"], [[0], [1]], 2**80],
        },
    ),
    "Sequences.of sequences": (
        with_defaults(Sequences.of, data=DATA), {"alphabet": ["ab", 3], "sep": [" "], "lengths": [[4] * 4], "pad": [0]},
    ),
    "Sequences[...]": (
        lambda rows: DATA[rows],
        {
            "rows": [
                None, ..., "ab", 1, 2.5, True, [99], [-9], [0.5], torch.rand(2), torch.tensor(1), torch.tensor([True]),
                META, {}, object(), (0, 1), [None], [[0], [1]], slice("a"), slice(None, None, -1),
            ],
        },
    ),
    "Sequences.encode": (DATA.encode, {"symbols": [None, 3, "xy", [["a"]], [None], object(), [{}], NAN]}),
    "Sequences.padded": (DATA.padded, {"pad": [None, "a", 0.5, [1], torch.tensor([1, 2]), NAN, 2**70, 1j]}),
    "Sequences.cat": (Sequences.cat, {"parts": [None, 3, [], [None], DATA, "ab", [DATA, OTHER], [DATA, "ab"], {}]}),
    "Sequences.over": (DATA.over, {"alphabet": [None, 3.5, "ab", "aab", object(), [], 0, NAN, Sequences]}),
    "as_model": (
        with_defaults(as_model, model=WALK, data=WORDS),
        {
            "model": [*MODELS, torch.nn.Linear(2, 2)],
            "data": [None, 3, "abc", [], {}, META],
            "parameters": ["stop", 3, [0.5], {"stop": 1.0}],
            "order": [value for value in COUNTS if value is not None],
            "marginal": MARGINALS,
            "sampler": ["yes", 3, {}, lambda: None, Sequences],
        },
    ),
    "Marginal": (
        with_defaults(Marginal),
        {"guide": ["prior", 3, {}, [], Marginal], "num_points": [value for value in [*COUNTS, 1] if value is not None]},
    ),
    "ListedReplacements": (
        with_defaults(ListedReplacements, codes=torch.tensor([[1], [0]])),
        {
            "codes": [
                None, 3, [[1], [0]], torch.tensor([1, 0]), torch.tensor([[1.0], [0.0]]), torch.tensor([[2], [0]]),
                torch.tensor([[0], [1]]), torch.tensor([[1], [-1]]), torch.tensor([[1, 1], [0, 0]]),
            ],
        },
    ),
    "as_model of a program": (
        with_defaults(as_model, model=program, data=WORDS), {"parameters": [{"stop": value} for value in NO_SHARES]},
    ),
    "as_model of a loop": (
        with_defaults(as_model, model=hierarchy, data=WORDS),
        {"parameters": [{"x_0": torch.tensor(1)}, *({"stop": value} for value in NO_SHARES)]},
    ),
    "constrain": (
        with_defaults(constrain, model=WALK, predicate=lambda x: x.lengths > 1),
        {"model": [*MODELS, program], "predicate": [*FUNCTIONS, bool], "max_proposals": COUNTS},
    ),
    "constrain(...).log_joint": (
        lambda predicate: constrain(WALK, predicate).log_joint(DATA),
        {"predicate": [lambda x: None, lambda x: True, lambda x: x.lengths, lambda x: x.mask]},
    ),
    "with_sampler": (
        with_defaults(with_sampler, model=WALK, sampler=sampler),
        {"model": [*MODELS, program], "sampler": FUNCTIONS},
    ),
    "with_sampler(...).draw": (
        with_defaults(lambda sampler, **options: with_sampler(WALK, sampler).draw(**options), sampler=sampler),
        {"num_sequences": COUNTS},
    ),
    "TabulatedModel": (
        with_defaults(TabulatedModel, model=WALK, order=1, data=DATA),
        {
            "model": [*MODELS, program],
            "order": [*COUNTS, 40],
            "data": [value for value in SEQUENCES if value is not None],
        },
    ),
    "fit_markov": (
        with_defaults(fit_markov, data=WORDS, order=1),
        {
            "order": [*COUNTS, 60],
            "pseudocount": [None, "0", -1, NAN, math.inf, True, [1]],
            "backoff": [None, 1, "yes"],
            "data": [None, 3, "abc", []],
        },
    ),
    "RefitMarkov": (
        RefitMarkov,
        {"pseudocount": [None, "0", -1, NAN, math.inf, True, [1]], "backoff": [None, 1, "yes"]},
    ),
    "fit_hidden_markov": (
        with_defaults(fit_hidden_markov, data=WORDS, num_states=1),
        {
            "num_states": COUNTS,
            "pseudocount": [None, "0", -1, NAN, math.inf, True, [1]],
            "num_restarts": COUNTS,
            "num_steps": COUNTS,
            "seed": [-1, "0", 1.5],
            "data": [None, 3, "abc", [], ["a", ""]],
        },
    ),
    "RefitHiddenMarkov": (
        RefitHiddenMarkov,
        {"pseudocount": [None, "0", -1, NAN, math.inf, True, [1]], "num_steps": COUNTS},
    ),
    "RefitMarkov()": (
        with_defaults(RefitMarkov(), model=WALK, data=DATA),
        {"model": [None, "markov", program, MarkovSequence], "data": [None, 3, "abc"]},
    ),
    "RefitSVI": (
        RefitSVI,
        {
            "guide": [None, "AutoDelta", 3],
            "num_steps": NUMBERS,
            "learning_rate": [None, "fast", 0, -1, NAN, math.inf, True],
            "seed": SEEDS,
        },
    ),
    "RefitSVI()": (
        with_defaults(RefitSVI(num_steps=1), program=program, data=DATA),
        {"program": [None, "program", 3], "data": [None, 3, WORDS]},
    ),
    "MarkovSequence": (
        with_defaults(MarkovSequence, probs=CHAIN),
        {
            "probs": [*PROBABILITIES, torch.rand(2, 3), torch.ones(1, 1), torch.full((3, 3), 0.5)],
            "order": COUNTS,
            "max_length": COUNTS,
            "validate_args": ["yes", 3],
        },
    ),
    "MarkovSequence.from_transitions": (
        with_defaults(MarkovSequence.from_transitions, initial=COIN, transition=FLIPS, stop=0.2),
        {
            "initial": PROBABILITIES,
            "transition": PROBABILITIES,
            "stop": [None, "never", -0.1, 1.5, NAN, True, [], {}, [0.5, "a"], torch.rand(3), 0.5j, META[0], WALK],
            "max_length": COUNTS,
        },
    ),
    "HiddenMarkovSequence": (
        with_defaults(
            HiddenMarkovSequence, initial=COIN, transition=FLIPS, emission=torch.full((2, 4), 0.25), stop=0.2,
        ),
        {
            "initial": PROBABILITIES,
            "transition": PROBABILITIES,
            "emission": PROBABILITIES,
            "stop": [None, "never", -0.1, 1.5, NAN, True, [], {}, [0.5, "a"], torch.rand(3), 0.5j, META[0]],
            "max_length": COUNTS,
        },
    ),
    "IndependentSequence": (
        with_defaults(IndependentSequence, probs=COIN, length=torch.tensor([0.5, 0.5])),
        {
            "probs": PROBABILITIES,
            "length": [
                None, "long", 3, [], {}, dist.Normal(0.0, 1.0), dist.Poisson, dist.Categorical(COIN),
                torch.tensor([0.5]),
                torch.tensor([1, 0]), [0.5, "a"], META[0], dist.Multinomial(1, COIN),
            ],
            "minimum": NUMBERS,
            "max_length": [value for value in COUNTS if value is not None],
        },
    ),
    "LinearChainMRF": (
        with_defaults(LinearChainMRF, pairwise=FLIPS, max_length=3),
        {
            "pairwise": [
                None, "ab", 0.5, [], {}, torch.rand(2, 3), torch.full((2, 2), NAN), COMPLEX, META, FLIPS.long(),
            ],
            "unary": ["ab", 0.5, [], {}, torch.rand(3), torch.full((2,), math.inf), COMPLEX[0], META[0]],
            "length": ["ab", 0.5, [], {}, torch.rand(3), torch.full((4,), NAN), COMPLEX[0], META[0]],
            "max_length": COUNTS,
        },
    ),
    "log_prob": (
        WALK.log_prob,
        {
            "value": [
                None, "ab", 3, [[0, 1]], torch.rand(2, 2), torch.tensor(1), torch.tensor([0, 9]),
                torch.tensor([-1, 0]),
            ],
        },
    ),
    "log_joint": (WALK.log_joint, {"sequences": [*SEQUENCES, OTHER]}),
    "log_ratio": (
        with_defaults(WALK.log_ratio, sequences=DATA, edits=zs().edits(DATA)),
        {"sequences": [*SEQUENCES, OTHER], "edits": [None, zs(), "ab", DATA, zs().edits(DATA[:2])]},
    ),
    "draw": (
        with_defaults(WALK.draw, num_sequences=2),
        {"num_sequences": NUMBERS, "generator": GENERATORS},
    ),
    "sample": (WALK.sample, {"sample_shape": ["ab", None, 3, (2.5,), (-1,)]}),
    "AutoregressiveModel": (
        with_defaults(AutoregressiveModel, network=network, prompt=[0], end=1, max_length=3),
        {
            "network": [
                None, "gpt2", 3, torch.nn.Linear, torch.nn.Linear(2, 2), lambda: None, lambda c: None, lambda c: c,
                lambda c: torch.zeros(3), lambda c: torch.full((*c.shape, 4), NAN), lambda c: torch.rand(*c.shape, 4),
            ],
            "prompt": ["ab", 3, [], [0.5], [[0]], [True], ["a"], {}, torch.rand(2), [None]],
            "end": [*NUMBERS, 4],
            "max_length": COUNTS,
            "rules": [None, 3, "TopK", [3], [TopK], {}, {3}, TopK(5), [Temperature(2.0), None]],
        },
    ),
    "Temperature": (with_defaults(Temperature, temperature=0.7), {"temperature": [0, -1.0, NAN, "1", None]}),
    "RepetitionPenalty": (with_defaults(RepetitionPenalty, penalty=1.2), {"penalty": [0, -1.0, NAN, "1", None]}),
    "TopK": (with_defaults(TopK, k=3), {"k": COUNTS}),
    "TopP": (with_defaults(TopP, p=0.9), {"p": [0, -1.0, NAN, 1.01, "1", None]}),
    "AutoregressiveModel.from_causal_lm": (
        with_defaults(AutoregressiveModel.from_causal_lm, lm=LanguageModel(), prompt=[0], end=1, max_new_tokens=3),
        {"lm": [None, "gpt2", network, torch.nn.Linear(2, 2)], "max_new_tokens": COUNTS},
    ),
    "AutoregressiveModel(...).draw": (
        with_defaults(AutoregressiveModel(network, prompt=[0], end=1, max_length=9).draw, num_sequences=2),
        {"num_sequences": COUNTS, "generator": GENERATORS},
    ),
    "AutoregressiveModel(...).draw_given": (
        with_defaults(AutoregressiveModel(network, end=1, max_length=9).draw_given, covariates=PROMPTS),
        {"covariates": [None, 3, "ab", [[0], [1]]], "generator": GENERATORS},
    ),
    "MarkovSequence(...).draw_given": (
        with_defaults(WALK.draw_given, covariates=PROMPTS),
        {"covariates": [None, 3, "ab", [[0], [1]]], "generator": GENERATORS},
    ),
    "Sequences(...).with_covariates": (
        with_defaults(Sequences.of(["ab", "b"]).with_covariates, covariates=[0, 1]),
        {"covariates": [None, 3, "ab", [1], {}, {"a": [1]}, {"a": "xy"}, [None, None], [[1], ["a"]], network]},
    ),
    "LoopProgram": (
        with_defaults(LoopProgram, program=loop, alphabet_size=3),
        {
            "program": [None, "loop", 3, LoopProgram, lambda x: None],
            "alphabet_size": COUNTS,
            "parameters": ["stop", 3, [], {"rate": 0.5}],
            "symbol_site": [None, 3, "x", "stop_{}"],
            "stop_site": [None, 3, "stop", "x_{}"],
            "max_length": COUNTS,
        },
    ),
    "LoopProgram(...).draw": (
        with_defaults(LoopProgram(loop, 3).draw, num_sequences=2), {"num_sequences": COUNTS, "generator": GENERATORS},
    ),
    "LoopProgram(...).log_joint": (LoopProgram(loop, 3).log_joint, {"sequences": [*SEQUENCES, OTHER]}),
    "LoopProgram(...).log_ratio": (
        with_defaults(LoopProgram(loop, 3).log_ratio, sequences=DATA, edits=zs().edits(DATA)),
        {"sequences": [*SEQUENCES, OTHER], "edits": [None, zs(), zs().edits(DATA[:2])]},
    ),
    "VectorizedProgram": (
        vectorized,
        {
            "program": [None, "program", 3, loop, WALK, MarkovSequence, lambda x: None],
            "example": [None, "abc", 3, WORDS, DATA[:0]],
            "parameters": ["stop", 3, [], [1], {"stop": "a"}],
        },
    ),
    "VectorizedProgram(...).draw": (
        with_defaults(vectorized().draw, num_sequences=2), {"num_sequences": COUNTS, "generator": GENERATORS},
    ),
    "VectorizedProgram(...).at": (
        vectorized().at, {"values": [None, "stop", 3, {"start": 1.0}, {"stop": "a"}, {"stop": torch.rand(3)}]},
    ),
    "PosteriorModels": (
        with_defaults(PosteriorModels, program=program, data=DATA, posterior={"stop": torch.rand(3)}),
        {
            "data": [None, WORDS, 3],
            "posterior": [
                {"stop": "a"}, {"stop": META[0]}, {"stop": torch.rand(0)}, {"stop": None}, {"start": torch.rand(3)},
            ],
            "num_draws": COUNTS,
        },
    ),
    "VectorizedProgram(...).log_joint": (vectorized().log_joint, {"sequences": [*SEQUENCES, OTHER]}),
    "zs": (
        zs,
        {
            "locations": [value for value in COUNTS if value is not None],
            "symbols": ["ab", 2.5, 0, True, [1], torch.eye(3), torch.ones(3).bool(), np.eye(3), META],
            "insertable": [3, 2.5, [["a"]], True],
        },
    ),
    "zs(...).edits": (
        lambda sequences=DATA, **options: zs(**options).edits(sequences),
        {
            "sequences": SEQUENCES,
            "symbols": [torch.ones(2, 2).bool(), torch.eye(3).bool().roll(1, 0)],
            "insertable": ["xy"],
        },
    ),
    "Substitutions": (Substitutions, {"locations": ["3", 0, 2.5], "symbols": ["ab", 0, torch.eye(3)]}),
    "InsertionsDeletions": (InsertionsDeletions, {"locations": ["3", 0, 2.5], "insertable": [3, [["a"]]]}),
    "DoubleSubstitutions": (DoubleSubstitutions, {"locations": ["3", 0, 2.5], "symbols": ["ab", 0, torch.eye(3)]}),
    "DoubleSubstitutions().edits": (DoubleSubstitutions().edits, {"sequences": SEQUENCES}),
    "InsertionsDeletions().edits": (InsertionsDeletions().edits, {"sequences": SEQUENCES}),
    "BeforeEnd": (BeforeEnd, {"neighborhood": [*NEIGHBORHOODS, None]}),
    "BeforeEnd(...).edits": (BeforeEnd(zs()).edits, {"sequences": SEQUENCES}),
    "Union": (Union, {"parts": [None, 3, (), [], (zs(), 3), (zs, zs)]}),
    "zs() | other": (lambda other: zs() | other, {"other": NEIGHBORHOODS}),
    "CustomNeighborhood": (CustomNeighborhood, {"function": FUNCTIONS}),
    "CustomNeighborhood(...).edits": (
        lambda function, sequences=DATA: CustomNeighborhood(function).edits(sequences),
        {"function": [lambda x: None, lambda x: 3, lambda x: [3], lambda x: [[0.5]], lambda x: ["xy"]]},
    ),
    "prefix_zs": (
        with_defaults(prefix_zs, candidates=codes, top=2),
        {"candidates": FUNCTIONS, "top": COUNTS, "locations": ["3", 0, 2.5]},
    ),
    "PrefixSubstitutions(...).edits": (
        lambda candidates=codes, sequences=DATA: PrefixSubstitutions(candidates, 2).edits(sequences),
        {"candidates": [lambda x, top: None, lambda x, top: x.tokens, lambda x, top: [3]], "sequences": SEQUENCES},
    ),
    "PrefixInsertionsDeletions(...).edits": (
        lambda candidates=codes, sequences=DATA: PrefixInsertionsDeletions(candidates, 2).edits(sequences),
        {"candidates": [lambda x, top: "ab"], "sequences": SEQUENCES},
    ),
    "check_symmetric": (
        with_defaults(check_symmetric, neighborhood=zs(), sequences=DATA),
        {"neighborhood": [*NEIGHBORHOODS, None], "sequences": SEQUENCES},
    ),
    "is_connected": (
        with_defaults(is_connected, neighborhood=zs(), space=DATA),
        {"neighborhood": [*NEIGHBORHOODS, None], "space": SEQUENCES},
    ),
    "as_balancing": (as_balancing, {"balancing": [*BALANCINGS, lambda r: r.exp(), lambda r: -r.sigmoid()]}),
    "barker": (barker, {"log_ratio": [None, "ab", 0.5, [0.5]]}),
    "mpf": (mpf, {"log_ratio": [None, "ab", 0.5, [0.5]]}),
    "metropolis": (metropolis, {"log_ratio": [None, "ab", 0.5, [0.5]]}),
    "ZanellaOperator": (ZanellaOperator, {"neighborhood": [*NEIGHBORHOODS, None], "balancing": BALANCINGS}),
    "HeatBathOperator": (HeatBathOperator, {"neighborhood": [*NEIGHBORHOODS, None]}),
    "TailBlockOperator": (TailBlockOperator, {"neighborhood": [*NEIGHBORHOODS, None], "balancing": BALANCINGS}),
    "View": (
        with_defaults(View, name="pairs", operator=ZanellaOperator(), kernel=ContiguousKernel(2)),
        {
            "name": [None, 3, ["pairs"], b"pairs", View],
            "operator": [None, "zanella", ZanellaOperator, zs(), barker],
            "kernel": [None, "hamming", HammingKernel, 3, zs()],
            "weight": [None, "heavy", 0, -1.0, NAN, math.inf, True, [1.0], 1j],
        },
    ),
    "default_views": (
        default_views,
        {"neighborhood": NEIGHBORHOODS, "balancing": [*BALANCINGS]},
    ),
    "ContiguousKernel": (
        ContiguousKernel,
        {"length": [*COUNTS, 63], "max_length": ["3", 2.5, 1, True, 10**6], "form": ["root", None, 3, ["sqrt"], True]},
    ),
    "StartKernel": (StartKernel, {"width": [*COUNTS, 63, 10**6]}),
    "EndKernel": (EndKernel, {"width": [*COUNTS, 63, 10**6]}),
    "RepeatsKernel": (RepeatsKernel, {"width": [*COUNTS, 1, 63, 10**6]}),
    "PositionKernel": (PositionKernel, {"period": COUNTS}),
    "SkipKernel": (
        SkipKernel,
        {"distances": [None, "23", 2, (), [2, 3], (3, 2), (2, 2), (0,), (2.5,), (63,), (True,)]},
    ),
    "LengthKernel": (LengthKernel, {"feature": FUNCTIONS}),
    "LengthKernel(...).gram": (
        lambda feature: LengthKernel(feature).gram(DATA, DATA),
        {"feature": [lambda n: None, lambda n: 3, lambda n: n[:1], lambda n: n / 0, lambda n: n[None, None]]},
    ),
    "EmbeddingKernel": (
        with_defaults(EmbeddingKernel, function=lambda x: x.tokens),
        {"function": FUNCTIONS, "batch_size": COUNTS},
    ),
    "EmbeddingKernel(...).gram": (
        lambda function: EmbeddingKernel(function).gram(DATA, DATA),
        {
            "function": [
                lambda x: None, lambda x: 3, lambda x: x.lengths, lambda x: x.tokens / 0, lambda x: x.tokens[:1],
            ],
        },
    ),
    "LandmarkKernel": (
        with_defaults(LandmarkKernel, kernel=HammingKernel(), landmarks=DATA),
        {"kernel": [None, "ab", 3, HammingKernel, zs()], "landmarks": [*SEQUENCES, DATA[:0]]},
    ),
    "LandmarkKernel.from_sequences": (
        with_defaults(LandmarkKernel.from_sequences, kernel=HammingKernel(), sequences=DATA),
        {
            "kernel": [None, "ab", 3, HammingKernel, zs()], "sequences": SEQUENCES, "num_landmarks": COUNTS,
            "seed": SEEDS,
        },
    ),
    "IMQHammingKernel": (
        IMQHammingKernel,
        {"scale": [None, "1", 0, -1, NAN, math.inf, True, [1]], "exponent": [None, "1", 0, -1, NAN, math.inf, True]},
    ),
    "GapWeightedKernel": (GapWeightedKernel, {"length": COUNTS, "decay": [None, "1", 0, -1, 1.5, NAN, True, [1]]}),
    "DiracKernel": (DiracKernel, {"on": ["symbols", None, 3, ["length"], True]}),
    "kernel + other": (lambda other: HammingKernel() + other, {"other": [None, "ab", 3, HammingKernel, zs()]}),
    "kernel * other": (
        lambda other: HammingKernel() * other,
        {"other": [None, "ab", 0, -1, NAN, math.inf, True, HammingKernel, zs(), 1j]},
    ),
    **{
        f"{type(kernel).__name__}.gram": (with_defaults(kernel.gram, x=DATA, y=DATA), {"x": SEQUENCES, "y": [3, OTHER]})
        for kernel in (
            ContiguousKernel(2), StartKernel(), LengthKernel(), HammingKernel(), IMQHammingKernel(), DiracKernel(),
            CyclicGaussianKernel(
                ), GapWeightedKernel(), EmbeddingKernel(lambda x: x.tokens[:, :1]), DiracKernel("length",
            ),
            HammingKernel() + StartKernel(), HammingKernel() * StartKernel(), 2 * HammingKernel(),
            LandmarkKernel(HammingKernel(), DATA),
        )
    },
    "stein_matrices": (
        with_defaults(stein_matrices, model=WALK, sequences=DATA, views=VIEWS),
        {"model": [*MODELS, program], "sequences": [*SEQUENCES, OTHER], "views": VIEW_LISTS, "max_bytes": COUNTS},
    ),
    "assemble": (
        with_defaults(assemble, model=WALK, sequences=DATA, views=VIEWS),
        {"model": [*MODELS, program], "sequences": [*SEQUENCES, OTHER], "views": VIEW_LISTS, "max_bytes": COUNTS},
    ),
    "weighted_edits": (
        with_defaults(weighted_edits, model=WALK, operator=ZanellaOperator(), sequences=DATA),
        {"model": [*MODELS, program], "operator": [None, ZanellaOperator, zs(), VIEWS[0]], "sequences": SEQUENCES},
    ),
    "zanella_sample": (
        with_defaults(zanella_sample, model=WALK, num_sequences=2, start=DATA, time=0.1, progress=False),
        {
            "model": [*MODELS, program],
            "num_sequences": COUNTS,
            "start": [*SEQUENCES, DATA[:0], OTHER],
            "time": [None, "long", 0, -1, NAN, math.inf, True, [1]],
            "neighborhood": NEIGHBORHOODS,
            "balancing": BALANCINGS,
            "seed": SEEDS,
            "progress": FLAGS,
        },
    ),
    "split_rhat": (
        split_rhat,
        {"draws": [None, "ab", [1, 2], torch.rand(4), torch.rand(2, 3), torch.ones(2, 4).long()]},
    ),
    "effective_sample_size": (
        effective_sample_size,
        {"draws": [None, "ab", [1, 2], torch.rand(4), torch.rand(2, 3), torch.ones(2, 4).long()]},
    ),
    "seeded_generator": (seeded_generator, {"seed": SEEDS}),
    "goodness_of_fit": (
        goodness,
        {
            "model": [*MODELS, program],
            "sequences": [*SEQUENCES, OTHER],
            "views": [*VIEW_LISTS, [VIEWS[0]] * 2],
            "bootstrap": BOOTSTRAPS,
            "num_bootstrap": COUNTS,
            "seed": SEEDS,
            "max_bytes": COUNTS,
        },
    ),
    "localize": (
        with_defaults(localize, result=FOUND),
        {
            "result": [None, CHECK, DATA, PREDICTED],
            "attribution": FLAGS,
            "max_bytes": COUNTS,
            "progress": FLAGS,
        },
    ),
    "edit_shares": (
        with_defaults(edit_shares, chunk=CHUNK, view=VIEWS[0], found=MATRICES[0], num_sequences=4),
        {
            "chunk": [None, DATA, zs()],
            "view": [None, "start", View],
            "found": [None, torch.eye(4)],
            "num_sequences": [*COUNTS, 1],
            "max_bytes": COUNTS,
        },
    ),
    "mean_localization": (mean_localization, {"parts": [None, 3, [], [None], PLACES[0], [CHECK]]}),
    "harmonic_p": (
        with_defaults(harmonic_p, observed=torch.rand(2), null=torch.rand(5, 2)),
        {
            "observed": [None, "ab", 3, [1, 2], torch.tensor(0.5), META[0, :2]],
            "null": [None, "ab", [1, 2], torch.rand(5), torch.rand(5, 3), torch.rand(0, 2)],
            "weights": ["ab", 3, [1, 2], torch.rand(3), torch.tensor(0.5), META[0, :2]],
        },
    ),
    "p_value": (
        with_defaults(p_value, observed=torch.rand(2), null=torch.rand(5, 2)),
        {
            "observed": [None, "ab", 3, [1, 2], META[0, :2]],
            "null": [None, "ab", [1, 2], torch.rand(0, 2), torch.rand(5, 3), torch.tensor(0.5)],
        },
    ),
    "predictive_p_value": (
        with_defaults(predictive_p_value, realized=torch.rand(5), replicated=torch.rand(5)),
        {
            "realized": [None, "ab", [1, 2], torch.rand(0), torch.tensor(0.5)],
            "replicated": [None, "ab", [1, 2], torch.rand(4), torch.rand(0)],
        },
    ),
    "u_statistic": (u_statistic, {"found": [None, "ab", torch.eye(3), np.eye(3), [MATRIX], GramMatrix]}),
    "v_statistic": (v_statistic, {"found": [None, "ab", torch.eye(3), np.eye(3), [MATRIX], GramMatrix]}),
    "weighted_u_statistics": (
        with_defaults(weighted_u_statistics, matrix=MATRIX, weights=torch.ones(2, 4).double()),
        {"matrix": [None, torch.eye(3)], "weights": [None, [1], torch.ones(4), torch.ones(2, 3).double(), META, "ab"]},
    ),
    "rademacher": (
        with_defaults(rademacher, num_draws=2, size=3, generator=GENERATOR),
        {"num_draws": NUMBERS, "size": NUMBERS, "generator": GENERATORS},
    ),
    "multinomial": (
        with_defaults(multinomial, num_draws=2, size=3, generator=GENERATOR),
        {"num_draws": NUMBERS, "size": COUNTS, "generator": GENERATORS},
    ),
    "wild_bootstrap": (
        with_defaults(wild_bootstrap, found=MATRICES, views=VIEWS, signs=Signs(0, 3)),
        {"found": [None, [], 3, [None], [MATRIX]], "views": VIEW_LISTS, "signs": [None, 3, torch.ones(3, 4), Signs]},
    ),
    "Signs": (
        with_defaults(Signs, seed=0, num_draws=3),
        {"seed": SEEDS, "num_draws": NUMBERS, "first_draw": NUMBERS},
    ),
    "parametric_bootstrap": (
        with_defaults(parametric_bootstrap, model=WALK, size=4, views=VIEWS, num_draws=3, generator=GENERATOR),
        {
            "model": [*MODELS, program],
            "size": COUNTS,
            "views": VIEW_LISTS,
            "num_draws": COUNTS,
            "generator": GENERATORS,
            "max_bytes": COUNTS,
            "progress": FLAGS,
        },
    ),
    "refitted_bootstrap": (
        with_defaults(
            refitted_bootstrap,
            model=WALK, refit=lambda data: WALK, size=4, views=VIEWS, num_draws=3, generator=GENERATOR,
        ),
        {
            "model": [*MODELS, program],
            "refit": [*FUNCTIONS, lambda data: None, lambda data: "markov"],
            "size": COUNTS,
            "views": VIEW_LISTS,
            "num_draws": COUNTS,
            "generator": GENERATORS,
            "progress": FLAGS,
        },
    ),
    "posterior_predictive": (
        with_defaults(posterior_predictive, models=draws(), sequences=DATA, views=VIEWS),
        {
            "models": [None, WALK, [WALK], {"stop": torch.rand(3)}],
            "sequences": [*SEQUENCES, DATA[:1], OTHER],
            "views": VIEW_LISTS,
            "seed": SEEDS,
            "max_bytes": COUNTS,
            "progress": FLAGS,
        },
    ),
    "relative_fit": (
        relative_fit,
        {
            "sums": [
                None, 3, [], [None], RowSums.of(MATRICES), MATRICES,
                [RowSums.of([MATRIX]), RowSums.of(MATRICES)],
            ],
        },
    ),
    "RowSums.of": (RowSums.of, {"matrices": [None, 3, [], [None], [torch.eye(3)], MATRIX]}),
    "leave_one_out": (leave_one_out, {"others": [None, "ab", [1.0, 2.0], torch.tensor(0.5), torch.rand(2)]}),
    "jackknife_error": (jackknife_error, {"left_out": [None, "ab", [1.0, 2.0], torch.tensor(0.5), torch.rand(1)]}),
    "to_datatree": (
        with_defaults(
            to_datatree,
            result=FOUND, localizations=PLACES, sequences=DATA, impossible_sites={}, extent=SIZE, settings={},
            gram=False,
        ),
        {
            "result": [None, CHECK, PREDICTED],
            "localizations": [None, 3, [], [None] * 5, PLACES[:2]],
            "sequences": [*SEQUENCES, DATA[:2]],
            "impossible_sites": [None, 3, ["x_0"], {"a": "x_0"}],
            "extent": [None, 3, {}, CHECK, extent],
            "settings": [None, 3, ["seed"]],
            "gram": FLAGS,
        },
    ),
    "predictive_datatree": (
        with_defaults(predictive_datatree, result=PREDICTED, sequences=DATA, impossible_sites={}, settings={}),
        {
            "result": [None, CHECK, FOUND],
            "sequences": [*SEQUENCES, DATA[:2]],
            "impossible_sites": [None, 3, ["x_0"]],
            "settings": [None, 3, ["seed"]],
        },
    ),
    "common_groups": (
        with_defaults(
            common_groups,
            meanings={"pairs": "pairs of neighbors"}, statistic=torch.rand(1), null=torch.rand(9, 1),
            p_value=torch.rand(1), p_value_overall=0.5, sequences=DATA, kind="wild", settings={},
        ),
        {
            "meanings": [None, "pairs", ["pairs"], {}, {3: "pairs"}],
            "statistic": [None, 0.5, torch.rand(2), torch.tensor(0.5)],
            "null": [None, 0.5, torch.rand(9), torch.rand(9, 2)],
            "p_value": [None, 0.5, torch.rand(2)],
            "p_value_overall": [None, "0.5", [0.5]],
            "sequences": SEQUENCES,
            "kind": [None, 3, ["wild"]],
            "settings": [None, 3, ["seed"]],
        },
    ),
    "load": (load, {"path": [None, 3, CHECK, "", "none.nc", b"check.nc", ["check.nc"]]}),
    "summary": (summary, {"check": CHECKS}),
    "verdict": (verdict, {"check": CHECKS}),
    "compare_table": (
        compare_table,
        {"comparison": [None, "check.nc", {}, 3, EMPTY, POSTERIOR, HOLLOW, CHECK, xr.DataTree]},
    ),
    "extend": (
        with_defaults(extend, container=POSTERIOR, check=CHECK),
        {"container": [None, "check.nc", {}, 3, xr.DataTree], "check": [None, "check.nc", {}, 3, EMPTY, POSTERIOR]},
    ),
    "to_inference_data": (to_inference_data, {"check": [None, "check.nc", {}, 3, xr.Dataset(), xr.DataTree]}),
    "from_pyro": (
        with_defaults(from_pyro, posterior={"start": torch.rand(5, 2)}),
        {
            "posterior": [
                None, "draws", 3, [], {}, {3: torch.rand(3)}, {"start": META}, torch.rand(3), EMPTY,
                MarkovSequence, object(), {"start": "a"}, {"start": None}, {"start": torch.rand(0, 2)}, len,
            ],
            "num_draws": COUNTS,
            "group_by_chain": FLAGS,
            "coords": ["letter", 3, {"letter": 3}, {"letter": ["a", "b"]}, {"start_dim_0": ["a"]}],
            "dims": [
                "letter", 3, {"stop": ["a"]}, {"start": 3}, {"start": ["a", "b"]}, {"start": "ab"},
                {"start": ["draw"]},
            ],
        },
    ),
    "plot_check": (
        with_defaults(plot_check, check=CHECK),
        {"check": CHECKS, "num": COUNTS, **{name: FIGURES[name] for name in ("figsize", "backend_kwargs")}},
    ),
    "plot_views": (with_defaults(plot_views, check=CHECK), {"check": CHECKS, **FIGURES}),
    "plot_null": (
        with_defaults(plot_null, check=CHECK),
        {"check": CHECKS, "view": ["stop", 3, [], ["stop"], [3], {}], **FIGURES},
    ),
    "plot_ngrams": (
        with_defaults(plot_ngrams, check=CHECK),
        {"check": CHECKS, "view": ["stop", 3, [], ["stop"], [3], {}], "num": COUNTS, **FIGURES},
    ),
    "plot_sequences": (
        with_defaults(plot_sequences, check=CHECK),
        {"check": CHECKS, "view": ["stop", 3, [], ["start"]], "num": COUNTS, **FIGURES},
    ),
    "plot_gram": (
        with_defaults(plot_gram, check=made_up_check()),
        {"check": [*CHECKS, CHECK], "view": ["stop", 3, [], ["start"]], **FIGURES},
    ),
    "plot_discrepancy": (
        with_defaults(plot_discrepancy, check=predictive_datatree(PREDICTED, DATA, {}, settings={"level": 0.05})),
        {"check": [*CHECKS, CHECK], "view": ["stop", 3, [], ["stop"]], **FIGURES},
    ),
    "plot_compare": (
        with_defaults(plot_compare, comparison=COMPARISON),
        {"comparison": [None, "check.nc", {}, EMPTY, HOLLOW, CHECK], **FIGURES},
    ),
    "random_walk": (
        random_walk,
        {
            "size": COUNTS,
            "hold": [None, "often", -0.1, 1.5, NAN, True, [0.5]],
            "mean_length": [None, "long", 0, -1, 0.5, NAN, math.inf, True],
        },
    ),
}  # fmt: skip


def cases(table: Mapping[str, tuple[Callable[..., Any], Arguments]]) -> Iterator[Any]:
    """One argument at a time with all its wrong values; the other arguments are right."""
    for name, (function, arguments) in table.items():
        for argument, values in arguments.items():
            yield pytest.param(function, argument, values, id=f"{name}-{argument}")


@pytest.fixture(autouse=True)
def _closed_figures() -> Iterator[None]:
    yield
    plt.close("all")


def complaint(function: Callable[..., Any], argument: str, value: object) -> str:
    """What is wrong with the way in which the function refuses the value; empty if nothing is."""
    try:
        function(**{argument: value})
    except ValueError as error:
        message = str(error)
        innermost = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)][-1]
        names = {argument, "sequence"} if argument == "data" else {argument}
        if "expected" not in message:
            return f"does not say what was expected: {message}"
        if not any(name in message for name in names):
            return f"does not name the argument: {message}"
        return "" if Path(innermost).is_relative_to(PACKAGE) else f"comes from {innermost}: {message}"
    except Exception as error:
        return f"is no ValueError: {error!r}"
    return "is not raised"


@pytest.mark.filterwarnings("ignore")  # a warning may come before the error
@pytest.mark.parametrize(("function", "argument", "values"), list(cases(WRONG)))
def test_wrong_values_of_an_argument_are_refused_by_name(
    function: Callable[..., Any], argument: str, values: list[Any]
) -> None:
    assert values
    complaints = {index: complaint(function, argument, value) for index, value in enumerate(values)}
    assert {index: f"the error {text}" for index, text in complaints.items() if text} == {}


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda size: None, "is not raised"),
        (lambda size: size + "a", "is no ValueError: TypeError("),
        (lambda size: int("size: expected"), f"comes from {__file__}: invalid literal"),
        (lambda size: check_number("count", size, least=1), "does not name the argument: count: expected"),
        (lambda size: int("size"), "does not say what was expected: invalid literal"),
    ],
)
def test_a_refusal_that_is_not_right_is_found(function: Callable[..., Any], text: str) -> None:
    assert complaint(lambda size: check_number("size", size, least=1), "size", 0) == ""
    assert complaint(function, "size", 0 if "name" in text else 2).startswith(text)


def test_there_are_many_wrong_arguments() -> None:
    assert sum(len(values) for _, arguments in WRONG.values() for values in arguments.values()) >= 2000


@pytest.mark.parametrize(
    "call",
    [
        lambda: ksd_check(
            WALK, WORDS, num_bootstrap=np.int64(5), level=np.float64(0.05), seed=np.int32(1), gram=np.True_,
            progress=False,
        ),
        lambda: ksd_check(WALK, WORDS, order=np.int64(1), num_bootstrap=5, level=np.float32(0.05), progress=False),
        lambda: mmd_check(WALK, WORDS, num_samples=np.int64(4), num_bootstrap=np.uint8(5), progress=np.False_),
        lambda: likelihood_ratio_check(
            WALK, WORDS, alternative=np.int64(1), pseudocount=np.float64(0.5), num_bootstrap=5, progress=False
        ),
        lambda: fit_markov(WORDS, np.int64(1), pseudocount=np.float32(0.5)),
        lambda: zanella_sample(WALK, np.int64(2), start=DATA, time=np.float64(0.1), seed=np.int64(3), progress=False),
        lambda: zs(np.int64(1), np.int64(1)).edits(DATA),
        lambda: (np.float64(2.0) * ContiguousKernel(np.int64(2)) + np.int64(3) * StartKernel(np.int64(1))).meaning,
        lambda: EmbeddingKernel(lambda x: x.tokens[:, :2], batch_size=np.int64(3)).gram(DATA, DATA),
        lambda: GapWeightedKernel(np.int64(2), np.float64(0.5)).gram(DATA, DATA),
        lambda: MarkovSequence(CHAIN.numpy(), order=np.int64(1), max_length=np.int64(999)).sample((np.int64(2),)),
        lambda: MarkovSequence.from_transitions([0.5, 0.5], np.full((2, 2), 0.5), stop=np.float64(0.2)).draw(2),
        lambda: AutoregressiveModel(
            network, prompt=np.array([0]), end=np.int64(1), max_length=np.int64(3), rules=[TopK(np.int64(4))]
        ).draw(np.int64(2)),
        lambda: plot_ngrams(CHECK, num=np.int64(3), figsize=np.array([5.0, 3.0])),
        lambda: split(WORDS, np.float32(0.5), seed=np.int64(3)),
        lambda: DATA[np.array([0, 2])].padded(np.int64(-1)),
        lambda: as_model(program, WORDS, parameters={"stop": np.float64(0.5)}).draw(np.int64(2)),
        lambda: as_model(hierarchy, WORDS, parameters={"stop": np.array(0.5)}).draw(np.int64(2)),
        lambda: PosteriorModels(program, DATA, {"stop": np.array([0.3, 0.4])}, num_draws=np.int64(2)),
        lambda: random_walk(np.int64(3), hold=np.float32(0.5), mean_length=np.int64(4)),
    ],
)  # fmt: skip
def test_numbers_of_numpy_are_numbers(call: Callable[[], Any]) -> None:
    call()
