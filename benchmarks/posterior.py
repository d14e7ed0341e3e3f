# SPDX-License-Identifier: Apache-2.0
"""The time of a posterior predictive check: ``python -m benchmarks.posterior``.

A first-order chain over 10 symbols with Dirichlet priors, 100 sequences of length 20. The times are those of one
posterior draw, as a multiple of the plain wild-bootstrap check of the same program at one point. With ``order=1`` the
replicated data are drawn from the tables; the time of that is compared with that of the program. With ``order="auto"``
the program draws them and scores the edits of the data, and verified tables give the ratios of replicated data.
"""

from __future__ import annotations

import argparse
from typing import Any

import pyro
import pyro.distributions as dist
import torch
from pyro import poutine

from benchmarks.timing import alternating, seconds
from pyro_ksd import MarkovSequence, Sequences, ksd_check
from pyro_ksd.models.posterior.posterior_models import PosteriorModels

SYMBOLS = 10
COUNT = 100
LENGTH = 20


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


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.posterior", description=__doc__)
    parser.add_argument("--draws", type=int, default=40, help="the number of posterior draws")
    count = parser.parse_args().draws
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


if __name__ == "__main__":
    main()
