# SPDX-License-Identifier: Apache-2.0
"""What every distribution of the package must do."""

from __future__ import annotations

from itertools import product

import pyro
import pyro.distributions as dist
import pytest
import torch
from pyro import poutine

from pyro_ksd import ksd_check
from pyro_ksd.edits.neighborhoods import CustomNeighborhood, DoubleSubstitutions, Substitutions, zs
from pyro_ksd.edits.splices import Edits
from pyro_ksd.models import (
    HiddenMarkovSequence,
    IndependentSequence,
    LinearChainMRF,
    MarkovSequence,
    SequenceDistribution,
    SequenceModel,
)
from pyro_ksd.sequences.container import Sequences

DOUBLE = torch.double
S = 3


def rows(seed: int, *shape: int, zero: tuple[int, ...] | None = None) -> torch.Tensor:
    """Random probabilities along the last dimension, with an exact zero at one index."""
    weights = torch.rand(shape, dtype=DOUBLE, generator=torch.Generator().manual_seed(seed)) + 0.2
    if zero is not None:
        weights[(..., *zero)] = 0
    return weights / weights.sum(-1, keepdim=True)


def potentials(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(shape, dtype=DOUBLE, generator=torch.Generator().manual_seed(seed))


def markov(order: int, batch: tuple[int, ...] = ()) -> MarkovSequence:
    table = rows(order, *batch, *[S + 1] * (order + 1), zero=(*[0] * order, 1))
    return MarkovSequence(table, order=order, max_length=60)


def hidden_markov(batch: tuple[int, ...] = ()) -> HiddenMarkovSequence:
    emission = rows(13, *batch, 2, S)
    emission[..., 2] = 0
    emission = emission / emission.sum(-1, keepdim=True)
    initial, transition = rows(11, *batch, 2), rows(12, *batch, 2, 2, zero=(0, 1))
    return HiddenMarkovSequence(initial, transition, emission, torch.tensor([0.3, 0.5], dtype=DOUBLE), max_length=80)


def mrf(batch: tuple[int, ...] = ()) -> LinearChainMRF:
    pairwise = potentials(21, *batch, S, S)
    pairwise[..., 0, 2] = -torch.inf
    length = potentials(22, *batch, 6)
    length[..., 2] = -torch.inf
    return LinearChainMRF(pairwise, potentials(23, *batch, S), length)


def independent(batch: tuple[int, ...] = ()) -> IndependentSequence:
    law = dist.Poisson(torch.full(batch, 3.0, dtype=DOUBLE))
    return IndependentSequence(rows(31, *batch, S, zero=(1,)), law, max_length=30)


def tabulated(batch: tuple[int, ...] = ()) -> IndependentSequence:
    return IndependentSequence(rows(32, *batch, S), rows(33, *batch, 5, zero=(1,)), minimum=1)


MAKERS = {
    "markov-1": lambda batch=(): markov(1, batch),
    "markov-2": lambda batch=(): markov(2, batch),
    "markov-3": lambda batch=(): markov(3, batch),
    "independent": independent,
    "tabulated": tabulated,
    "hidden-markov": hidden_markov,
    "mrf": mrf,
}

NEIGHBORHOODS = {
    "zs": zs(),
    "substitutions": Substitutions(),
    "double substitutions": DoubleSubstitutions(),
    "custom": CustomNeighborhood(lambda x: [x[::-1], x[: len(x) // 2], x + x, (*x[1:], 0, 1)]),
}


@pytest.fixture(params=MAKERS)
def make(request):
    return MAKERS[request.param]


@pytest.fixture
def model(make) -> SequenceDistribution:
    return make()


def rebuilt(model: SequenceDistribution, values: dict[str, torch.Tensor], index: tuple[int, ...] = ()):
    """A single model of the same kind with the given parameters, those of one member of a batch."""
    if isinstance(model, MarkovSequence):
        return MarkovSequence(**values, order=model.order)
    if isinstance(model, IndependentSequence):
        if model.max_length == 30:
            return IndependentSequence(**values, length=dist.Poisson(torch.tensor(3.0, dtype=DOUBLE)))
        return IndependentSequence(**values, length=rows(33, *model.batch_shape, 5, zero=(1,))[index], minimum=1)
    return type(model)(**values)


def everything(longest: int) -> Sequences:
    return Sequences.of([list(x) for length in range(longest + 1) for x in product(range(S), repeat=length)], S)


def possible(model: SequenceDistribution, longest: int = 4) -> Sequences:
    space = everything(longest)
    return space[model.log_joint(space) > -torch.inf]


def test_protocol(model):
    assert isinstance(model, SequenceModel)
    assert model.can_draw
    assert model.alphabet_size == S


@pytest.mark.parametrize("name", NEIGHBORHOODS)
def test_log_ratio_is_difference_of_log_joints(model, name):
    sequences = possible(model)
    edits = NEIGHBORHOODS[name].edits(sequences)
    target = model.log_joint(edits.apply(sequences)) - model.log_joint(sequences)[edits.owner]
    ratio = model.log_ratio(sequences, edits)
    assert not ratio.isnan().any()
    assert (ratio == -torch.inf).equal(target == -torch.inf)
    torch.testing.assert_close(ratio, target, rtol=1e-10, atol=1e-10)


def test_neighborhoods_reach_impossible_sequences(model):
    sequences = possible(model)
    if model.log_joint(everything(4)).isfinite().all():
        pytest.fail("the test model forbids nothing, so -inf ratios go untested")
    assert (model.log_ratio(sequences, zs().edits(sequences)) == -torch.inf).any()


def test_log_ratio_between_impossible_sequences_is_no_nan(model):
    space = everything(3)
    assert not model.log_ratio(space, zs().edits(space)).isnan().any()


def test_log_ratio_of_no_edits_and_of_identities(model):
    sequences = possible(model, 3)
    none = model.log_ratio(sequences, Edits((), len(sequences)))
    assert none.shape == (0,)
    assert none.dtype == DOUBLE
    same = model.log_ratio(sequences, Edits.identity(sequences))
    torch.testing.assert_close(same, torch.zeros(len(sequences), dtype=DOUBLE), atol=1e-12, rtol=0)


def test_log_ratio_is_the_same_in_pieces(model, monkeypatch):
    sequences = possible(model)
    edits = zs().edits(sequences)
    whole = model.log_ratio(sequences, edits)
    monkeypatch.setattr("pyro_ksd.models.distributions.factor_table._PIECE", 7)
    monkeypatch.setattr("pyro_ksd.models.distributions.hidden_markov._PIECE", 7)
    torch.testing.assert_close(model.log_ratio(sequences, edits), whole, rtol=1e-12, atol=1e-12)


def test_log_joint_is_log_prob_of_padded(model):
    space = everything(3)
    assert torch.equal(model.log_joint(space), model.log_prob(space.padded(-1)))


def test_width_of_padding_does_not_matter(model):
    value = everything(3).padded(-1)
    wider = torch.nn.functional.pad(value, (0, model.max_length + 2 - value.shape[1]), value=-1)
    torch.testing.assert_close(model.log_prob(wider), model.log_prob(value), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("batch", [(), (2,), (4, 2)])
@pytest.mark.parametrize("sample_shape", [(), (3,), (2, 3)])
def test_sample_shapes(make, batch, sample_shape):
    torch.manual_seed(0)
    model = make(batch)
    value = model.sample(torch.Size(sample_shape))
    assert model.batch_shape == batch
    assert model.event_shape == (model.max_length,)
    assert value.shape == (*sample_shape, *batch, model.max_length)
    assert value.dtype == torch.long
    assert model.support.check(value).all()
    assert model.log_prob(value).shape == (*sample_shape, *batch)
    assert model.log_prob(value).isfinite().all()


def test_batch_members_keep_their_own_parameters(make):
    value = everything(3).padded(-1)
    batch = make((4, 2))
    together = batch.log_prob(value[:, None, None])
    assert together.shape == (len(value), 4, 2)
    for i, j in product(range(4), range(2)):
        one = rebuilt(batch, {name: getattr(batch, name)[i, j] for name in batch.arg_constraints}, (i, j))
        torch.testing.assert_close(together[:, i, j], one.log_joint(everything(3)), rtol=1e-13, atol=1e-13)
    assert not torch.allclose(together[:, 0, 0], together[:, 1, 0])


def test_samples_of_batch_members_follow_their_own_parameters(make):
    torch.manual_seed(1)
    model = make((2,))
    value = model.sample(torch.Size([4000]))
    for member in range(2):
        for symbols in everything(2).to_lists():
            probe = torch.tensor([*symbols, -1])
            exact = model.log_prob(probe).exp()[member].item()
            padded = torch.nn.functional.pad(probe, (0, model.max_length - len(probe)), value=-1)
            hits = (value[:, member] == padded).all(-1).double().mean().item()
            assert abs(hits - exact) <= 5 * (exact * (1 - exact) / 4000) ** 0.5


@pytest.mark.parametrize("batch", [(), (2,)])
def test_expand(make, batch):
    torch.manual_seed(2)
    model = make(batch)
    expanded = model.expand((5, *batch))
    assert type(expanded) is type(model)
    assert expanded.batch_shape == (5, *batch)
    assert expanded.event_shape == model.event_shape
    value = expanded.sample((3,))
    assert value.shape == (3, 5, *batch, model.max_length)
    torch.testing.assert_close(expanded.log_prob(value), model.log_prob(value))
    assert not torch.equal(value[:, 0], value[:, 1])
    for name in model.arg_constraints:
        own, wide = getattr(model, name), getattr(expanded, name)
        assert wide.shape == (5, *own.shape)
        assert torch.equal(wide[3], own)
    assert model.batch_shape == batch


def test_observed_in_a_plate(model):
    torch.manual_seed(3)
    data = model.sample((7,))

    def program():
        with pyro.plate("sequences", 7):
            return pyro.sample("x", model, obs=data)

    with pyro.validation_enabled():
        trace = poutine.trace(program).get_trace()
        trace.compute_log_prob()
    assert trace.nodes["x"]["fn"].batch_shape == (7,)
    torch.testing.assert_close(trace.nodes["x"]["log_prob"], model.log_prob(data))


def test_sampled_in_plates(model):
    torch.manual_seed(4)
    with pyro.plate("outer", 2, dim=-2), pyro.plate("inner", 3, dim=-1):
        value = pyro.sample("x", model)
    assert value.shape == (2, 3, model.max_length)


def test_draw(model):
    state = torch.get_rng_state()
    drawn = model.draw(500, torch.Generator().manual_seed(5))
    again = model.draw(500, torch.Generator().manual_seed(5))
    other = model.draw(500, torch.Generator().manual_seed(6))
    assert torch.equal(torch.get_rng_state(), state)
    assert drawn.to_lists() == again.to_lists() != other.to_lists()
    assert len(drawn) == 500
    assert drawn.alphabet == S
    assert drawn.width == drawn.lengths.max()
    assert model.log_joint(drawn).isfinite().all()


def test_draw_uses_the_global_state_without_a_generator(model):
    torch.manual_seed(7)
    first, second = model.draw(50).to_lists(), model.draw(50).to_lists()
    torch.manual_seed(7)
    assert model.draw(50).to_lists() == first != second


def test_draw_frequencies(model):
    count = 20_000
    drawn = model.draw(count, torch.Generator().manual_seed(8)).to_lists()
    space = everything(3)
    exact = model.log_joint(space).exp().tolist()
    tally: dict[tuple[int, ...], int] = {}
    for x in drawn:
        tally[tuple(x)] = tally.get(tuple(x), 0) + 1
    assert sum(exact) > 0.2
    statistic, degrees = 0.0, 0
    for x, p in zip(space.to_lists(), exact, strict=True):
        found = tally.get(tuple(x), 0)
        if p == 0:
            assert found == 0
        elif count * p >= 5:
            statistic, degrees = statistic + (found - count * p) ** 2 / (count * p), degrees + 1
    assert degrees >= 10
    assert statistic < degrees + 4 * (2 * degrees) ** 0.5


@pytest.mark.parametrize("dtype", [torch.float, torch.double])
def test_log_prob_has_the_dtype_of_the_parameters_and_log_joints_are_double(dtype):
    probs = torch.tensor([0.25, 0.75], dtype=dtype)
    models = [
        MarkovSequence.from_transitions(probs, probs.expand(2, 2), 0.5),
        IndependentSequence(probs, dist.Poisson(torch.tensor(1.0, dtype=dtype))),
        IndependentSequence(probs, torch.tensor([0.5, 0.5], dtype=dtype)),
        HiddenMarkovSequence(probs, probs.expand(2, 2), probs.expand(2, 2), 0.5),
        LinearChainMRF(torch.zeros(2, 2, dtype=dtype), max_length=3),
    ]
    data = Sequences.of([[0, 1], [1]])
    for model in models:
        assert model.log_prob(data.padded(-1)).dtype == dtype
        assert model.log_joint(data).dtype == torch.double
        assert model.log_ratio(data, zs().edits(data)).dtype == torch.double


def long_models(dtype: torch.dtype) -> dict[str, SequenceDistribution]:
    """Models of sequences of some thousand symbols; their parameters are the same numbers in both dtypes."""
    probs = torch.tensor([0.3, 0.7]).to(dtype)
    moves = torch.tensor([[0.6, 0.4], [0.2, 0.8]]).to(dtype)
    stop = torch.tensor(2.0**-11).to(dtype)
    return {
        "markov": MarkovSequence.from_transitions(probs, moves, stop),
        "independent": IndependentSequence(probs, dist.Poisson(torch.tensor(4000.0, dtype=dtype))),
        "hidden markov": HiddenMarkovSequence(probs, moves, moves.flip(0), stop),
        "mrf": LinearChainMRF(moves, length=torch.linspace(0, 4, 5100).to(dtype)),
    }


@pytest.mark.parametrize("name", long_models(torch.double))
def test_single_precision_loses_no_more_than_that_of_single_terms_in_long_sequences(name):
    generator = torch.Generator().manual_seed(0)
    data = Sequences.of(torch.randint(2, (2, 5000), generator=generator), alphabet=2)
    edits = zs(locations=20).edits(data)
    single, double = (long_models(dtype)[name] for dtype in (torch.float, torch.double))
    expected = double.log_joint(data)
    # Each of the 5,000 terms is rounded once: by the same relative error in all of them, at worst.
    torch.testing.assert_close(single.log_joint(data), expected, rtol=2e-7, atol=0)
    torch.testing.assert_close(single.log_ratio(data, edits), double.log_ratio(data, edits), rtol=0, atol=1e-5)


def test_gradients_are_finite_beside_impossible_sequences(make):
    model = make()
    values = {name: getattr(model, name).detach().clone().requires_grad_() for name in model.arg_constraints}
    fresh = rebuilt(model, values)
    sequences = possible(fresh, 3)
    fresh.log_prob(sequences.padded(-1)).sum().backward()
    for value in values.values():
        assert value.grad.isfinite().all()
        assert value.grad.abs().sum() > 0


def test_a_check_of_trained_parameters_tracks_no_gradients(make) -> None:
    model = make()
    values = {name: getattr(model, name).detach().clone().requires_grad_() for name in model.arg_constraints}
    fresh = rebuilt(model, values)
    sequences = possible(fresh, 3)
    edits = zs().edits(sequences)
    for found, expected in (
        (fresh.log_joint(sequences), model.log_joint(sequences)),
        (fresh.log_ratio(sequences, edits), model.log_ratio(sequences, edits)),
    ):
        assert not found.requires_grad
        assert torch.equal(found, expected)
    assert fresh.log_prob(sequences.padded(-1)).requires_grad  # also after the check: it is what SVI trains
    options = {"num_bootstrap": 5, "progress": False}
    check = ksd_check(fresh, sequences, **options)
    assert check["ksd"]["p_value"].equals(ksd_check(model, sequences, **options)["ksd"]["p_value"])


@pytest.mark.parametrize("kind", ["array", "list"])
def test_parameters_may_be_arrays_or_lists(make, kind) -> None:
    model = make()
    values = {name: getattr(model, name).numpy() for name in model.arg_constraints}
    if kind == "list":
        values = {name: value.tolist() for name, value in values.items()}
    found = rebuilt(model, values)
    sequences = possible(model, 3)
    expected = model.log_prob(sequences.padded(-1))
    own = found.log_prob(sequences.padded(-1))
    assert own.dtype == (expected.dtype if kind == "array" else torch.get_default_dtype())
    torch.testing.assert_close(own.to(expected.dtype), expected, rtol=1e-5, atol=1e-5)


def test_batches_are_no_model(make):
    model, data = make((2,)), Sequences.of([[0]], S)
    for call in (
        lambda: model.log_joint(data),
        lambda: model.log_ratio(data, zs().edits(data)),
        lambda: model.draw(3),
    ):
        with pytest.raises(
            ValueError, match=r"expected one model .* found a batch of models of shape \(2,\); check one"
        ):
            call()


def test_other_alphabet(model):
    data = Sequences.of([[0]], S + 1)
    message = r"the model's 3 symbols, found an alphabet of 4; state it in Sequences.of"
    with pytest.raises(ValueError, match=message):
        model.log_joint(data)
    with pytest.raises(ValueError, match=message):
        model.log_ratio(data, zs().edits(data))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (torch.tensor([[0, 1], [0, 3]]), r"codes 0..2, then only the padding -1, found 3 at index \[1, 1\]; fix"),
        (torch.tensor([0, -2]), r"found -2 at index \[1\]"),
        (torch.tensor([0, -1, 1]), r"found 1 at index \[2\]"),
        (torch.tensor([0.0, 1.0]), r"a long tensor of shape \[..., T\], found torch.float32 \[2\]; code the symbols"),
        (torch.tensor(0), r"found torch.int64 \[\]"),
        ([0, 1], "found list"),
    ],
)
def test_bad_values(model, value, message):
    with pytest.raises(ValueError, match=message):
        model.log_prob(value)


def test_value_that_does_not_broadcast(make):
    with pytest.raises(ValueError, match=r"broadcast with the batch shape \[2\], found \[3, 1\]; give one sequence"):
        make((2,)).log_prob(torch.zeros(3, 1, dtype=torch.long))


def test_support(model):
    value = torch.tensor([[0, 2, -1], [0, 3, -1], [-1, -1, -1], [-1, 0, -1], [-2, -1, -1]])
    assert model.support.check(value).tolist() == [True, False, True, False, False]
    assert model.support.check(torch.tensor([0.0, 0.5])).item() is False
    assert model.support.is_discrete
    assert model.support.event_dim == 1
    assert not model.has_enumerate_support
