# SPDX-License-Identifier: Apache-2.0
"""Music models in the form of Pyro's HMM example, several tones a step, each with a plain-Python twin.

As in the example, programs take ``args``, a batch size and whether to include the prior, use the default dtype, and do
not define how long a sequence is. Model 0, one sequence at a time, is there for its error message.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from types import SimpleNamespace
from typing import Any

import pyro
import pyro.distributions as dist
import torch
from plain_walks import Outcomes, Style, Walk, sigmoid
from pyro import poutine
from pyro.ops.indexing import Vindex
from pyro.util import ignore_jit_warnings
from torch import Tensor
from torch.distributions import constraints

TONES = 3
CHORDS = list(product((0, 1), repeat=TONES))
EVERY_CHORD = torch.tensor(CHORDS, dtype=torch.double)
PARALLEL = {"enumerate": "parallel"}
GIVEN_LENGTHS = "no probability to lengths"


def options(**changed: Any) -> SimpleNamespace:
    """What the example reads from the command line."""
    return SimpleNamespace(**{"hidden_dim": 2, "jit": False, "nn_dim": 4, "nn_channels": 2, "raftery": False} | changed)


def shape_of(sequences: Tensor, lengths: Tensor) -> tuple[int, int, int]:
    with ignore_jit_warnings():
        num_sequences, max_length, data_dim = map(int, sequences.shape)
        assert lengths.shape == (num_sequences,)
        assert lengths.max() <= max_length
    return num_sequences, max_length, data_dim


def sticky(size: int) -> Any:
    """A prior of moves between hidden states, most of which stay where they are."""
    return dist.Dirichlet(0.9 * torch.eye(size) + 0.1)


def silent(*shape: int) -> Any:
    """A prior of the probabilities of tones, most of which are silent."""
    return dist.Beta(0.1, 0.9).expand(shape).to_event(len(shape))


def one_at_a_time(
    sequences: Tensor, lengths: Tensor, args: Any, batch_size: int | None = None, include_prior: bool = True
) -> None:
    """Model 0: a hidden Markov model, with a loop over the sequences."""
    num_sequences, _, data_dim = sequences.shape
    with poutine.mask(mask=include_prior):
        probs_x = pyro.sample("probs_x", sticky(args.hidden_dim).to_event(1))
        probs_y = pyro.sample("probs_y", silent(args.hidden_dim, data_dim))
    tones_plate = pyro.plate("tones", data_dim, dim=-1)
    for i in pyro.plate("sequences", num_sequences, batch_size):
        sequence = sequences[i, : lengths[i]]
        x: Any = 0
        for t in pyro.markov(range(len(sequence))):
            x = pyro.sample(f"x_{i}_{t}", dist.Categorical(probs_x[x]), infer=PARALLEL)
            with tones_plate:
                pyro.sample(f"y_{i}_{t}", dist.Bernoulli(probs_y[x.squeeze(-1)]), obs=sequence[t])


def simple(
    sequences: Tensor, lengths: Tensor, args: Any, batch_size: int | None = None, include_prior: bool = True
) -> None:
    """Model 1: a hidden Markov model."""
    num_sequences, max_length, data_dim = shape_of(sequences, lengths)
    with poutine.mask(mask=include_prior):
        probs_x = pyro.sample("probs_x", sticky(args.hidden_dim).to_event(1))
        probs_y = pyro.sample("probs_y", silent(args.hidden_dim, data_dim))
    tones_plate = pyro.plate("tones", data_dim, dim=-1)
    with pyro.plate("sequences", num_sequences, batch_size, dim=-2) as batch:
        lengths = lengths[batch]
        x: Any = 0
        for t in pyro.markov(range(max_length if args.jit else lengths.max())):
            with poutine.mask(mask=(t < lengths).unsqueeze(-1)):
                x = pyro.sample(f"x_{t}", dist.Categorical(probs_x[x]), infer=PARALLEL)
                with tones_plate:
                    pyro.sample(f"y_{t}", dist.Bernoulli(probs_y[x.squeeze(-1)]), obs=sequences[batch, t])


def simple_with_stops(
    sequences: Tensor, lengths: Tensor, args: Any, batch_size: int | None = None, include_prior: bool = True
) -> None:
    """Model 1 with a further line: a sequence may stop after each step."""
    num_sequences, max_length, data_dim = shape_of(sequences, lengths)
    with poutine.mask(mask=include_prior):
        probs_x = pyro.sample("probs_x", sticky(args.hidden_dim).to_event(1))
        probs_y = pyro.sample("probs_y", silent(args.hidden_dim, data_dim))
    tones_plate = pyro.plate("tones", data_dim, dim=-1)
    with pyro.plate("sequences", num_sequences, batch_size, dim=-2) as batch:
        lengths = lengths[batch]
        x: Any = 0
        for t in pyro.markov(range(max_length if args.jit else lengths.max())):
            with poutine.mask(mask=(t < lengths).unsqueeze(-1)):
                x = pyro.sample(f"x_{t}", dist.Categorical(probs_x[x]), infer=PARALLEL)
                last = (lengths == t + 1).unsqueeze(-1).to(probs_x.dtype)
                pyro.sample(f"stop_{t}", dist.Bernoulli(torch.tensor(args.stop)), obs=last)
                with tones_plate:
                    pyro.sample(f"y_{t}", dist.Bernoulli(probs_y[x.squeeze(-1)]), obs=sequences[batch, t])


def autoregressive(
    sequences: Tensor, lengths: Tensor, args: Any, batch_size: int | None = None, include_prior: bool = True
) -> None:
    """Model 2: each tone depends on the hidden state and on the same tone one step before."""
    num_sequences, max_length, data_dim = shape_of(sequences, lengths)
    with poutine.mask(mask=include_prior):
        probs_x = pyro.sample("probs_x", sticky(args.hidden_dim).to_event(1))
        probs_y = pyro.sample("probs_y", silent(args.hidden_dim, 2, data_dim))
    tones_plate = pyro.plate("tones", data_dim, dim=-1)
    with pyro.plate("sequences", num_sequences, batch_size, dim=-2) as batch:
        lengths = lengths[batch]
        x: Any = 0
        y: Any = 0
        for t in pyro.markov(range(max_length if args.jit else lengths.max())):
            with poutine.mask(mask=(t < lengths).unsqueeze(-1)):
                x = pyro.sample(f"x_{t}", dist.Categorical(probs_x[x]), infer=PARALLEL)
                with tones_plate as tones:
                    y = pyro.sample(f"y_{t}", dist.Bernoulli(probs_y[x, y, tones]), obs=sequences[batch, t]).long()


def factorial(
    sequences: Tensor, lengths: Tensor, args: Any, batch_size: int | None = None, include_prior: bool = True
) -> None:
    """Model 3: two hidden chains, on both of which the tones depend."""
    num_sequences, max_length, data_dim = shape_of(sequences, lengths)
    hidden_dim = int(args.hidden_dim**0.5)
    with poutine.mask(mask=include_prior):
        probs_w = pyro.sample("probs_w", sticky(hidden_dim).to_event(1))
        probs_x = pyro.sample("probs_x", sticky(hidden_dim).to_event(1))
        probs_y = pyro.sample("probs_y", silent(hidden_dim, hidden_dim, data_dim))
    tones_plate = pyro.plate("tones", data_dim, dim=-1)
    with pyro.plate("sequences", num_sequences, batch_size, dim=-2) as batch:
        lengths = lengths[batch]
        w: Any = 0
        x: Any = 0
        for t in pyro.markov(range(max_length if args.jit else lengths.max())):
            with poutine.mask(mask=(t < lengths).unsqueeze(-1)):
                w = pyro.sample(f"w_{t}", dist.Categorical(probs_w[w]), infer=PARALLEL)
                x = pyro.sample(f"x_{t}", dist.Categorical(probs_x[x]), infer=PARALLEL)
                with tones_plate as tones:
                    pyro.sample(f"y_{t}", dist.Bernoulli(probs_y[w, x, tones]), obs=sequences[batch, t])


def dynamic_network(
    sequences: Tensor, lengths: Tensor, args: Any, batch_size: int | None = None, include_prior: bool = True
) -> None:
    """Model 4: two hidden chains, the second of which depends on the first."""
    num_sequences, max_length, data_dim = shape_of(sequences, lengths)
    hidden_dim = int(args.hidden_dim**0.5)
    with poutine.mask(mask=include_prior):
        probs_w = pyro.sample("probs_w", sticky(hidden_dim).to_event(1))
        probs_x = pyro.sample("probs_x", sticky(hidden_dim).expand_by([hidden_dim]).to_event(2))
        probs_y = pyro.sample("probs_y", silent(hidden_dim, hidden_dim, data_dim))
    tones_plate = pyro.plate("tones", data_dim, dim=-1)
    with pyro.plate("sequences", num_sequences, batch_size, dim=-2) as batch:
        lengths = lengths[batch]
        w = x = torch.tensor(0, dtype=torch.long)
        for t in pyro.markov(range(max_length if args.jit else lengths.max())):
            with poutine.mask(mask=(t < lengths).unsqueeze(-1)):
                w = pyro.sample(f"w_{t}", dist.Categorical(probs_w[w]), infer=PARALLEL)
                x = pyro.sample(f"x_{t}", dist.Categorical(Vindex(probs_x)[w, x]), infer=PARALLEL)
                with tones_plate as tones:
                    pyro.sample(f"y_{t}", dist.Bernoulli(probs_y[w, x, tones]), obs=sequences[batch, t])


class Generator(torch.nn.Module):
    """Logits of the tones from a hidden state and the tones before, with a convolution over neighboring tones."""

    def __init__(self, args: Any, data_dim: int) -> None:
        super().__init__()
        self.args, self.data_dim = args, data_dim
        self.x_to_hidden = torch.nn.Linear(args.hidden_dim, args.nn_dim)
        self.y_to_hidden = torch.nn.Linear(args.nn_channels * data_dim, args.nn_dim)
        self.conv = torch.nn.Conv1d(1, args.nn_channels, 3, padding=1)
        self.hidden_to_logits = torch.nn.Linear(args.nn_dim, data_dim)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        one_hot = y.new_zeros((*x.shape[:-1], self.args.hidden_dim)).scatter_(-1, x, 1)
        filtered = torch.relu(self.conv(y.reshape(-1, 1, self.data_dim))).reshape((*y.shape[:-1], -1))
        logits: Tensor = self.hidden_to_logits(torch.relu(self.x_to_hidden(one_hot) + self.y_to_hidden(filtered)))
        return logits


def neural(
    sequences: Tensor, lengths: Tensor, args: Any, batch_size: int | None = None, include_prior: bool = True
) -> None:
    """Model 5: a network gives the tones from the hidden state and the tones before."""
    num_sequences, max_length, data_dim = shape_of(sequences, lengths)
    pyro.module("tones_generator", args.generator)
    with poutine.mask(mask=include_prior):
        probs_x = pyro.sample("probs_x", sticky(args.hidden_dim).to_event(1))
    with pyro.plate("sequences", num_sequences, batch_size, dim=-2) as batch:
        lengths = lengths[batch]
        x: Any = 0
        y = torch.zeros(data_dim)
        for t in pyro.markov(range(max_length if args.jit else lengths.max())):
            with poutine.mask(mask=(t < lengths).unsqueeze(-1)):
                x = pyro.sample(f"x_{t}", dist.Categorical(probs_x[x]), infer=PARALLEL)
                # Each tone depends on all tones before, so the steps have their own plates.
                with pyro.plate(f"tones_{t}", data_dim, dim=-1):
                    logits = args.generator(x, y)
                    y = pyro.sample(f"y_{t}", dist.Bernoulli(logits=logits), obs=sequences[batch, t])


def second_order(
    sequences: Tensor, lengths: Tensor, args: Any, batch_size: int | None = None, include_prior: bool = False
) -> None:
    """Model 6: a hidden state depends on the two before it; all probabilities are parameters."""
    num_sequences, _, data_dim = shape_of(sequences, lengths)
    size = args.hidden_dim
    if args.raftery:
        one_back = pyro.param("probs_x1", torch.rand(size, size), constraint=constraints.simplex)
        two_back = pyro.param("probs_x2", torch.rand(size, size), constraint=constraints.simplex)
        share = pyro.param("mix_lambda", torch.tensor(0.5), constraint=constraints.unit_interval)
        probs_x = share * one_back + (1.0 - share) * two_back.unsqueeze(-2)
    else:
        probs_x = pyro.param("probs_x", torch.rand(size, size, size), constraint=constraints.simplex)
    probs_y = pyro.param("probs_y", torch.rand(size, data_dim), constraint=constraints.unit_interval)
    tones_plate = pyro.plate("tones", data_dim, dim=-1)
    with pyro.plate("sequences", num_sequences, batch_size, dim=-2) as batch:
        lengths = lengths[batch]
        current, previous = torch.tensor(0), torch.tensor(0)
        for t in pyro.markov(range(lengths.max()), history=2):
            with poutine.mask(mask=(t < lengths).unsqueeze(-1)):
                probs = Vindex(probs_x)[previous, current]
                previous, current = current, pyro.sample(f"x_{t}", dist.Categorical(probs), infer=PARALLEL)
                with tones_plate:
                    pyro.sample(f"y_{t}", dist.Bernoulli(probs_y[current.squeeze(-1)]), obs=sequences[batch, t])


def unrolled(
    sequences: Tensor, lengths: Tensor, args: Any, batch_size: int | None = None, include_prior: bool = True
) -> None:
    """Model 7: Pyro's distribution of a whole sequence, with the network of model 5.

    As in the example, the network gets the tones of the same step, and the states as one vector, which makes its
    one-hot code a vector of ones. So the hidden states do not matter, and the weights of a step do not sum to 1.
    ``args.aligned`` gives it the tones before and one state a row: then it is model 5.
    """
    num_sequences, _, data_dim = shape_of(sequences, lengths)
    pyro.module("tones_generator", args.generator)
    with poutine.mask(mask=include_prior):
        probs_x = pyro.sample("probs_x", sticky(args.hidden_dim).to_event(1))
    with pyro.plate("sequences", num_sequences, batch_size, dim=-1) as batch:
        lengths = lengths[batch]
        y = sequences[batch] if args.jit else sequences[batch, : lengths.max()]
        x = torch.arange(args.hidden_dim)
        t = torch.arange(y.size(1))
        init_logits = torch.full((args.hidden_dim,), -float("inf"))
        init_logits[0] = 0
        given = y
        if args.aligned:
            x = x.unsqueeze(-1)
            given = torch.cat([torch.zeros(num_sequences, 1, data_dim), y[:, :-1]], 1)
        tones = dist.Bernoulli(logits=args.generator(x, given.unsqueeze(-2))).to_event(1)
        tones = tones.mask((t < lengths.unsqueeze(-1)).unsqueeze(-1))
        pyro.sample("y", dist.DiscreteHMM(init_logits, probs_x.log(), tones), obs=y)


def uniform(*shape: int, seed: int) -> Tensor:
    """Probabilities of tones, none close to 0 or 1."""
    rand = torch.rand(*shape, dtype=torch.double, generator=torch.Generator().manual_seed(seed))
    return 0.05 + 0.9 * rand


def moves(*shape: int, seed: int) -> Tensor:
    """Probabilities of hidden states, which sum to 1 in the last dimension."""
    return uniform(*shape, seed=seed) / uniform(*shape, seed=seed).sum(-1, keepdim=True)


def generator(args: Any, seed: int) -> Generator:
    """A network with clear effects."""
    net = Generator(args, TONES).double()
    normals = torch.Generator().manual_seed(seed)
    for parameter in net.parameters():
        parameter.data = 1.2 * torch.randn(parameter.shape, dtype=torch.double, generator=normals)
    return net


def chord_probability(ups: Sequence[float], chord: Sequence[int]) -> float:
    return math.prod(up if tone else 1 - up for up, tone in zip(ups, chord, strict=True))


def music(step: Callable[[Any], list[tuple[float, Any, Callable[[Sequence[int]], float]]]]) -> Walk:
    """A model of chords given the lengths, which are uniform from 2 to 6 where data are drawn.

    :param step: from a state, the probability of each hidden state, that state, and its probabilities of chords. The
        state after it has the code of the chord too, ``(hidden, code)``.
    """

    def outcomes(state: Any) -> Outcomes:
        return [
            (prob * chords(chord), code, (hidden, code))
            for prob, hidden, chords in step(state)
            for code, chord in enumerate(CHORDS)
        ]

    return Walk(outcomes, length=lambda length: 0.2 * (2 <= length <= 6), given_lengths=True)


Parameters = dict[str, Tensor]


def plain(values: Parameters) -> dict[str, Any]:
    return {name: value.tolist() for name, value in values.items()}


def of_tones(ups: Sequence[float]) -> Callable[[Sequence[int]], float]:
    return lambda chord: chord_probability(ups, chord)


def plain_simple(values: Parameters) -> Walk:
    p = plain(values)

    def step(state: Any) -> Any:
        x, _ = state or (0, None)
        return [(prob, after, of_tones(p["probs_y"][after])) for after, prob in enumerate(p["probs_x"][x])]

    return music(step)


def plain_autoregressive(values: Parameters) -> Walk:
    p = plain(values)

    def step(state: Any) -> Any:
        x, code = state or (0, 0)
        return [
            (prob, after, of_tones([p["probs_y"][after][last][tone] for tone, last in enumerate(CHORDS[code])]))
            for after, prob in enumerate(p["probs_x"][x])
        ]

    return music(step)


def plain_factorial(values: Parameters) -> Walk:
    p = plain(values)
    depends = values["probs_x"].ndim == 3  # on the first chain

    def step(state: Any) -> Any:
        (w, x), _ = state or ((0, 0), None)
        found = []
        for v, first in enumerate(p["probs_w"][w]):
            row = p["probs_x"][v][x] if depends else p["probs_x"][x]
            found += [(first * second, (v, z), of_tones(p["probs_y"][v][z])) for z, second in enumerate(row)]
        return found

    return music(step)


def plain_second_order(values: Parameters) -> Walk:
    p = plain(values)

    def step(state: Any) -> Any:
        (previous, current), _ = state or ((0, 0), None)
        if "probs_x" in p:
            row = p["probs_x"][previous][current]
        else:
            share = p["mix_lambda"]
            pairs = zip(p["probs_x1"][current], p["probs_x2"][previous], strict=True)
            row = [share * one + (1 - share) * two for one, two in pairs]
        return [(prob, (current, after), of_tones(p["probs_y"][after])) for after, prob in enumerate(row)]

    return music(step)


def affine(layer: Any, values: Sequence[float]) -> list[float]:
    rows = zip(layer.weight.tolist(), layer.bias.tolist(), strict=True)
    return [bias + sum(w * v for w, v in zip(weights, values, strict=True)) for weights, bias in rows]


def plain_logits(net: Generator, one_hot: Sequence[float], chord: Sequence[int]) -> list[float]:
    """What the network gives, in plain loops."""
    wide = [0, *chord, 0]
    filtered = []
    for [weights], bias in zip(net.conv.weight.tolist(), net.conv.bias.tolist(), strict=True):  # type: ignore[union-attr]
        for place in range(len(chord)):
            filtered.append(max(0.0, bias + sum(weights[shift] * wide[place + shift] for shift in range(3))))
    pairs = zip(affine(net.x_to_hidden, one_hot), affine(net.y_to_hidden, filtered), strict=True)
    return affine(net.hidden_to_logits, [max(0.0, of_x + of_y) for of_x, of_y in pairs])


def plain_neural(values: Parameters, net: Generator) -> Walk:
    p = plain(values)
    size = len(p["probs_x"])
    ups = {
        (x, code): [sigmoid(logit) for logit in plain_logits(net, [float(x == z) for z in range(size)], chord)]
        for x in range(size)
        for code, chord in enumerate(CHORDS)
    }

    def step(state: Any) -> Any:
        x, code = state or (0, 0)
        return [(prob, after, of_tones(ups[after, code])) for after, prob in enumerate(p["probs_x"][x])]

    return music(step)


def plain_unrolled(values: Parameters, net: Generator) -> Walk:
    """Model 7 as the example writes it: the tones of a step depend on themselves, and on nothing else."""
    ones = [1.0] * len(values["probs_x"])
    weights = {
        chord: chord_probability([sigmoid(logit) for logit in plain_logits(net, ones, chord)], chord)
        for chord in CHORDS
    }
    return music(lambda state: [(1.0, 0, lambda chord: weights[tuple(chord)])])


def style(
    model: Callable[..., Any],
    twin: Callable[[Parameters], Walk],
    values: Parameters,
    wrong: Parameters,
    args: Any,
    wrong_args: Any = None,
) -> Style:
    return Style(
        partial(model, args=args, include_prior=False),
        partial(model, args=wrong_args or args, include_prior=False),
        twin(values),
        size=len(CHORDS),
        parameters=values,
        wrong_parameters=wrong,
        warning=GIVEN_LENGTHS,
        given_lengths=True,
    )


def flipped(values: Parameters) -> Parameters:
    """The tones in the reverse order."""
    return values | {"probs_y": values["probs_y"].flip(-1)}


def with_priors(
    model: Callable[..., Any], twin: Callable[[Parameters], Walk], values: Parameters, **args: Any
) -> Style:
    return style(model, twin, values, flipped(values), options(**args))


STAY = torch.tensor([[0.85, 0.15], [0.25, 0.75]], dtype=torch.double)
SIMPLE = {"probs_x": STAY, "probs_y": torch.tensor([[0.8, 0.5, 0.1], [0.2, 0.1, 0.7]], dtype=torch.double)}
NET, OTHER_NET = generator(options(), seed=7), generator(options(), seed=8)
HIDDEN = {"probs_x": STAY}
RAFTERY = {
    "probs_x1": STAY,
    "probs_x2": STAY.flip(1),
    "mix_lambda": torch.tensor(0.7, dtype=torch.double),
    "probs_y": SIMPLE["probs_y"],
}


def with_network(model: Callable[..., Any], twin: Callable[[Parameters, Generator], Walk], **args: Any) -> Style:
    return style(
        model,
        lambda values: twin(values, NET),
        HIDDEN,
        HIDDEN,
        options(generator=NET, **args),
        options(generator=OTHER_NET, **args),
    )


STYLES = {
    "1 simple": with_priors(simple, plain_simple, SIMPLE),
    "1 with all steps": with_priors(simple, plain_simple, SIMPLE, jit=True),
    "1 with stops": Style(
        partial(simple_with_stops, args=options(stop=0.25), include_prior=False),
        partial(simple_with_stops, args=options(stop=0.5), include_prior=False),
        Walk(plain_simple(SIMPLE).step, lambda state: 0.0 if state is None else 0.25),
        size=len(CHORDS),
        parameters=SIMPLE,
        wrong_parameters=SIMPLE,
    ),
    "2 autoregressive": with_priors(
        autoregressive, plain_autoregressive, HIDDEN | {"probs_y": uniform(2, 2, TONES, seed=1)}
    ),
    "3 factorial": with_priors(
        factorial,
        plain_factorial,
        {"probs_w": moves(2, 2, seed=2), "probs_x": STAY, "probs_y": uniform(2, 2, TONES, seed=3)},
        hidden_dim=4,
    ),
    "4 dynamic network": with_priors(
        dynamic_network,
        plain_factorial,
        {"probs_w": STAY, "probs_x": moves(2, 2, 2, seed=4), "probs_y": uniform(2, 2, TONES, seed=5)},
        hidden_dim=4,
    ),
    "5 neural": with_network(neural, plain_neural),
    "6 second order": with_priors(
        second_order, plain_second_order, {"probs_x": moves(2, 2, 2, seed=6), "probs_y": SIMPLE["probs_y"]}
    ),
    "6 Raftery": with_priors(second_order, plain_second_order, RAFTERY, raftery=True),
    "7 unrolled": with_network(unrolled, plain_unrolled, aligned=False),
    "7 unrolled, with all steps": with_network(unrolled, plain_unrolled, aligned=False, jit=True),
    "7 unrolled and aligned": with_network(unrolled, plain_neural, aligned=True),
}
