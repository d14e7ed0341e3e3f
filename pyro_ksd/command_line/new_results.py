# SPDX-License-Identifier: Apache-2.0
"""The commands that check and compare models."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from pyro_ksd.checks.model_check import ksd_check
from pyro_ksd.checks.model_comparison import ksd_compare
from pyro_ksd.command_line.models_by_name import labeled_models, model_of
from pyro_ksd.command_line.saved_results import check_outputs, write
from pyro_ksd.models.fitting.counting import fit_markov
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.sequences.files.file_reading import read
from pyro_ksd.sequences.splitting import split

_HOLDOUT = 0.2  # the errors of a fit to as many sequences as are checked would pass for faults of the model
_READING = ("format", "sep", "column", "by", "symbol", "order_by", "skip_unknown")


def check(arguments: Namespace) -> int:
    """Checks a model: 0 if it may fit, 1 if it does not."""
    check_outputs(arguments)
    if arguments.fit is None:
        for option in ("order", "holdout"):
            if getattr(arguments, option) is not None:
                raise ValueError(f"--{option}: expected --fit beside it, found --model; leave out --{option}")
        model, data, words = model_of(arguments.model), _read(arguments), ""
    else:
        model, data, words = _fitted(arguments)
    result = ksd_check(
        model,
        data,
        views=arguments.views,
        end=arguments.end,
        tolerance=arguments.tolerance,
        num_bootstrap=arguments.num_bootstrap,
        level=arguments.level,
        seed=arguments.seed,
    )
    name = arguments.model or f"a Markov chain of order {_order(arguments)}"
    write(result, arguments, f"Does {name} fit {Path(arguments.data).name}?", words)
    return int(float(result["ksd"]["p_value_overall"]) <= arguments.level)


def compare(arguments: Namespace) -> int:
    """Compares models."""
    check_outputs(arguments)
    models = labeled_models(arguments.model)
    result = ksd_compare(models, _read(arguments), views=arguments.views, end=arguments.end, level=arguments.level)
    write(result, arguments, f"Which model fits {Path(arguments.data).name} best?")
    return 0


def _read(arguments: Namespace) -> Sequences:
    options: dict[str, Any] = {name: getattr(arguments, name) for name in _READING}
    alphabet = arguments.alphabet
    if alphabet is not None:
        alphabet = alphabet.split(",") if "," in alphabet else list(alphabet)
    return read(arguments.data, alphabet=alphabet, **options)


def _order(arguments: Namespace) -> int:
    return 1 if arguments.order is None else int(arguments.order)


def _fitted(arguments: Namespace) -> tuple[Any, Sequences, str]:
    """A chain that was fitted to a part of the data, the others, and what it is."""
    holdout = _HOLDOUT if arguments.holdout is None else arguments.holdout
    if not 0 < holdout < 1:
        raise ValueError(f"--holdout: expected a share between 0 and 1, found {holdout}")
    fit_to, check_on = split(_read(arguments), 1 - holdout, seed=arguments.seed)
    model = fit_markov(fit_to, _order(arguments), backoff=True)
    words = f"a Markov chain of order {_order(arguments)}, fitted to {len(fit_to):,} other sequences with back-off"
    print(f"Model: {words}")
    print(f"Data: {len(check_on):,} sequences\n")
    return model, check_on, words
