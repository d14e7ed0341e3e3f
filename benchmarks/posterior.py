# SPDX-License-Identifier: Apache-2.0
"""The time of a posterior predictive check: ``python -m benchmarks.posterior``.

A first-order chain over 10 symbols with Dirichlet priors, 100 sequences of length 20. The times are those of one
posterior draw, as a multiple of the plain wild-bootstrap check of the same program at one point. With ``order=1`` the
replicated data are drawn from the tables; the time of that is compared with that of the program. With ``order="auto"``
the program draws them and scores the edits of the data, and verified tables give the ratios of replicated data.

Then a hidden Markov model with 8 states over the same symbols, as a program with enumerated states: the parametric
bootstrap at one point, and the posterior predictive check, with ``order="auto"``, where verified automata give the
ratios of drawn data, and with ``order=None``, in wall time and in processor time.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import pyro
import pyro.distributions as dist
import torch
from pyro import poutine

from benchmarks.timing import alternating, seconds
from pyro_ksd import HiddenMarkovSequence, MarkovSequence, Sequences, ksd_check
from pyro_ksd.edits import zs
from pyro_ksd.models.posterior.posterior_models import PosteriorModels

SYMBOLS = 10
COUNT = 100
LENGTH = 20
STATES = 8


def chain(sequences: Any = None, lengths: Any = None, num_sequences: int | None = None) -> Any:
    initial = pyro.sample("initial", dist.Dirichlet(torch.ones(SYMBOLS).double()))
    moves = pyro.sample("moves", dist.Dirichlet(torch.ones(SYMBOLS, SYMBOLS).double()).to_event(1))
    if num_sequences is not None:
        drawn = MarkovSequence.from_transitions(initial, moves, stop=1 / LENGTH).draw(num_sequences)
        return drawn.tokens, drawn.lengths
    with pyro.plate("sequences", len(lengths)):
        for t in range(sequences.shape[1]):
            with poutine.mask(mask=t < lengths):
                law = initial if t == 0 else moves[sequences[:, t - 1]]
                pyro.sample(f"x_{t}", dist.Categorical(law), obs=sequences[:, t])
                pyro.sample(f"stop_{t}", dist.Bernoulli(1 / LENGTH), obs=(lengths == t + 1).double())
    return None


def hidden(sequences: Any = None, lengths: Any = None, num_sequences: int | None = None) -> Any:
    start = pyro.sample("start", dist.Dirichlet(torch.ones(STATES).double()))
    moves = pyro.sample("moves", dist.Dirichlet(torch.ones(STATES, STATES).double()).to_event(1))
    emission = pyro.sample("emission", dist.Dirichlet(torch.ones(STATES, SYMBOLS).double()).to_event(1))
    if num_sequences is not None:
        drawn = HiddenMarkovSequence(start, moves, emission, 1 / LENGTH).draw(num_sequences)
        return drawn.tokens, drawn.lengths
    z = None
    with pyro.plate("sequences", len(lengths)):
        for t in pyro.markov(range(sequences.shape[1])):
            with poutine.mask(mask=t < lengths):
                law = dist.Categorical(start if z is None else moves[z])
                z = pyro.sample(f"z_{t}", law, infer={"enumerate": "parallel"})
                pyro.sample(f"x_{t}", dist.Categorical(emission[z]), obs=sequences[:, t])
                pyro.sample(f"stop_{t}", dist.Bernoulli(1 / LENGTH), obs=(lengths == t + 1).double())
    return None


def report_hidden(count: int, bootstrap: int) -> None:
    """Prints the times of checks of the hidden Markov model.

    :param count: the number of posterior draws.
    :param bootstrap: the number of draws of the parametric bootstrap.
    """
    torch.manual_seed(0)
    centers = {
        "start": torch.ones(STATES).double() / STATES,
        "moves": dist.Dirichlet(torch.ones(STATES).double()).sample((STATES,)),
        "emission": dist.Dirichlet(torch.ones(SYMBOLS).double()).sample((STATES,)),
    }
    posterior = {name: dist.Dirichlet(200 * center + 0.1).sample((count,)) for name, center in centers.items()}
    point = {name: value[0] for name, value in posterior.items()}
    law = HiddenMarkovSequence(centers["start"], centers["moves"], centers["emission"], 1 / LENGTH)
    data = law.draw(COUNT, torch.Generator().manual_seed(1))
    edits = len(zs().edits(data))
    print(f"hidden Markov model with {STATES} states, {COUNT} sequences with {edits} edits")

    def drawn(order: Any) -> Any:
        options: dict[str, Any] = {"bootstrap": "parametric", "num_bootstrap": bootstrap}
        return ksd_check(hidden, data, parameters=point, order=order, progress=False, **options)

    def predictive(order: Any) -> Any:
        return ksd_check(hidden, data, posterior=posterior, order=order, progress=False)

    names = {f"parametric bootstrap, {bootstrap} draws": drawn, f"posterior check, {count} draws": predictive}
    for name, run in names.items():
        (quick, quick_cpu, found), (slow, slow_cpu, expected) = (timed(run, order) for order in ("auto", None))
        equal = found["ksd"]["p_value"].equals(expected["ksd"]["p_value"])
        states = found["ksd"].attrs.get("verified_states")
        print(
            f'  {name}: order="auto" {quick:.1f} s ({quick_cpu:.1f} s of the processor), order=None {slow:.1f} s '
            f"({slow_cpu:.1f} s), ratio {slow / quick:.2f} ({slow_cpu / quick_cpu:.2f}), {states} states, "
            f"p-values {'equal' if equal else 'differ'}"
        )


def timed(run: Callable[[Any], Any], order: Any) -> tuple[float, float, Any]:
    """Wall time, processor time and result of a check."""
    begin, begin_cpu = time.perf_counter(), time.process_time()
    found = run(order)
    return time.perf_counter() - begin, time.process_time() - begin_cpu, found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.posterior", description=__doc__)
    parser.add_argument("--draws", type=int, default=40, help="the number of posterior draws")
    parser.add_argument("--bootstrap", type=int, default=100, help="the number of draws of the parametric bootstrap")
    parser.add_argument("--hidden", action="store_true", help="only the hidden Markov model")
    arguments = parser.parse_args()
    count = arguments.draws
    if arguments.hidden:
        report_hidden(count, arguments.bootstrap)
        return
    generator = torch.Generator().manual_seed(0)
    data = Sequences.of(torch.randint(0, SYMBOLS, (COUNT, LENGTH), generator=generator), SYMBOLS)
    torch.manual_seed(0)
    law = dist.Dirichlet(torch.full((SYMBOLS,), 20.0).double())
    posterior = {"initial": law.sample((count,)), "moves": law.sample((count, SYMBOLS))}
    point = {name: value[0] for name, value in posterior.items()}
    print(f"{torch.get_num_threads()} threads, {count} posterior draws")
    for order in (1, "auto", None):

        def plain(order: Any = order) -> object:
            return ksd_check(chain, data, parameters=point, order=order, bootstrap="wild", progress=False)

        def predictive(order: Any = order) -> object:
            return ksd_check(chain, data, posterior=posterior, order=order, progress=False)

        base = seconds(plain, 3)
        spent = seconds(predictive, 1)
        print(
            f"  order={order}: plain check {base:.3f} s, posterior predictive check {spent:.1f} s, "
            f"{spent / count / base:.2f} plain checks a draw"
        )
    tables = PosteriorModels(chain, data, posterior, order=1)
    program = PosteriorModels(chain, data, posterior)
    new, old = alternating([lambda: tables.draw_like(data, generator), lambda: program.draw_like(data, generator)], 3)
    print(f"  replicated data: {new:.3f} s by the tables, {old:.3f} s by the program, ratio {old / new:.1f}")
    report_hidden(count, arguments.bootstrap)


if __name__ == "__main__":
    main()
