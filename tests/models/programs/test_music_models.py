# SPDX-License-Identifier: Apache-2.0
"""The models of Pyro's HMM example, with several tones a step: exact log-ratios, a true and a wrong model."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from functools import partial
from typing import Any

import music_models as music
import pyro
import pytest
import torch
from music_models import EVERY_CHORD, HIDDEN, NET, RAFTERY, SIMPLE, STYLES, options
from plain_walks import Style
from pyro import poutine
from pyro.infer.autoguide import AutoDelta
from torch.distributions import constraints

from pyro_ksd import Sequences, ksd_check
from pyro_ksd.edits.neighborhoods import Substitutions, zs
from pyro_ksd.edits.symbol_relations import one_channel
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.conversion import as_model

TRUTH = STYLES["1 simple"]


@pytest.fixture(autouse=True)
def _double() -> Iterator[None]:
    """Double precision, in which the programs make their tensors."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.double)
    yield
    torch.set_default_dtype(before)


def chords(codes: list[list[int]], dtype: torch.dtype = torch.double) -> Sequences:
    """Sequences of chords, from arrays ``[T, C]``."""
    every = EVERY_CHORD.to(dtype)
    return Sequences.of([every[x] for x in codes], alphabet=every)


FEW = chords(TRUTH.draw(8))


def expected_warning(style: Style) -> AbstractContextManager[Any]:
    return nullcontext() if style.warning is None else pytest.warns(UserWarning, match=style.warning)


def p_value(style: Style, program: Any, parameters: Any) -> float:
    data = chords(style.draw(style.count))
    with expected_warning(style):
        check = ksd_check(program, data, parameters=parameters, num_bootstrap=200, localize=False, progress=False)
    return float(check["ksd"]["p_value_overall"])


def compare_log_ratios(model: SequenceModel, style: Style, rows: list[list[int]], data: Sequences, tol: float) -> None:
    """Compares the log-ratios of all edits with those in plain Python."""
    edits = zs().edits(data)
    edited = edits.apply(data)
    found = model.log_ratio(data, edits).tolist()
    assert len(found) > 100
    for ratio, owner, tokens, length in zip(
        found, edits.owner.tolist(), edited.tokens.tolist(), edited.lengths.tolist(), strict=True
    ):
        expected = style.truth.log_joint(tokens[:length]) - style.truth.log_joint(rows[owner])
        assert ratio == pytest.approx(expected, rel=tol, abs=tol), (rows[owner], tokens[:length])


@pytest.mark.parametrize("name", STYLES)
def test_log_ratios_of_all_edits_against_plain_python(name: str) -> None:
    style = STYLES[name]
    rows = [x for x in style.draw(9, seed=1) if len(x) > 1]
    data = chords(rows)
    model = as_model(style.program, data, parameters=style.parameters)
    compare_log_ratios(model, style, rows, data, 1e-10)


@pytest.mark.parametrize("name", STYLES)
def test_log_ratios_in_single_precision(name: str) -> None:
    torch.set_default_dtype(torch.float)
    style = STYLES[name]
    program = style.program
    assert isinstance(program, partial)
    args = program.keywords["args"]
    if hasattr(args, "generator"):
        single = music.options(**vars(args) | {"generator": deepcopy(args.generator).float()})
        program = partial(program, args=single)
    rows = [x for x in style.draw(4, seed=1) if len(x) > 1]
    data = chords(rows, torch.float)
    parameters = {site: value.float() for site, value in (style.parameters or {}).items()}
    compare_log_ratios(as_model(program, data, parameters=parameters), style, rows, data, 1e-4)


@pytest.mark.parametrize("name", STYLES)
def test_the_true_model_is_accepted(name: str) -> None:
    style = STYLES[name]
    assert p_value(style, style.program, style.parameters) > 0.01


@pytest.mark.parametrize("name", STYLES)
def test_a_wrong_model_is_rejected(name: str) -> None:
    style = STYLES[name]
    assert p_value(style, style.wrong, style.wrong_parameters) <= 0.05


def test_the_prior_makes_no_difference() -> None:
    found = [
        as_model(partial(music.simple, args=options(), include_prior=prior), FEW, parameters=SIMPLE).log_joint(FEW)
        for prior in (True, False)
    ]
    assert torch.equal(*found)


def test_the_median_of_a_guide_is_a_point() -> None:
    def start(site: Any) -> torch.Tensor:
        return SIMPLE[site["name"]]

    model = partial(music.simple, args=options())
    guide = AutoDelta(poutine.block(model, expose_fn=lambda msg: msg["name"].startswith("probs_")), init_loc_fn=start)
    guide(EVERY_CHORD[FEW.tokens], FEW.lengths)
    found = as_model(model, FEW, parameters=guide.median()).log_joint(FEW)
    assert torch.allclose(found, as_model(model, FEW, parameters=SIMPLE).log_joint(FEW), rtol=1e-12)


def test_trained_parameters_come_from_the_parameter_store() -> None:
    bounds = {"mix_lambda": constraints.unit_interval, "probs_y": constraints.unit_interval}
    for name, value in RAFTERY.items():
        pyro.param(name, value, constraint=bounds.get(name, constraints.simplex))
    program = partial(music.second_order, args=options(raftery=True))
    expected = as_model(program, FEW, parameters=RAFTERY).log_joint(FEW)
    assert torch.allclose(as_model(program, FEW).log_joint(FEW), expected, rtol=1e-12)


def test_parameters_that_were_never_trained() -> None:
    with pytest.raises(ValueError, match=r"param 'probs_x': found an initial value that changes .* train the program"):
        as_model(partial(music.second_order, args=options()), FEW)


def test_priors_without_a_point() -> None:
    with pytest.raises(ValueError, match=r"site 'probs_x': found a global latent without a value, expected one in par"):
        as_model(partial(music.simple, args=options()), FEW)


def test_arguments_that_are_not_set() -> None:
    with pytest.raises(ValueError, match=r"for the parameter 'args' of the program, found none.*partial\(model, args="):
        as_model(music.simple, FEW, parameters=SIMPLE)


def test_a_batch_size() -> None:
    program = partial(music.simple, args=options(), batch_size=2)
    with pytest.raises(ValueError, match="plate 'sequences': found 2 of 3 members, expected all of them; a subsampled"):
        as_model(program, FEW, parameters=SIMPLE)


def test_a_batch_size_above_the_number_of_sequences() -> None:
    program = partial(music.simple, args=options(), batch_size=4)
    with pytest.raises(ValueError, match=r"subsample_size does not match.*leave out the batch size, or subsample_size"):
        as_model(program, FEW, parameters=SIMPLE)


def test_one_sequence_at_a_time() -> None:
    program = partial(music.one_at_a_time, args=options())
    with pytest.raises(ValueError, match=r"plate 'sequences': found a sequential plate .* expected a vectorized one"):
        as_model(program, FEW, parameters=SIMPLE)


def test_a_network_of_another_dtype_than_the_data() -> None:
    data = chords(TRUTH.draw(8), torch.long)
    with pytest.raises(
        ValueError, match=r"RuntimeError: .*with the vectors \(torch.int64\) of the symbols, \[3, 6, 3\]"
    ):
        as_model(partial(music.neural, args=options(generator=NET)), data, parameters=HIDDEN)


def test_tones_one_at_a_time() -> None:
    """With the chords of the data and those that differ from them in one tone, which need not be all chords."""
    rows = [EVERY_CHORD[x] for x in TRUTH.draw(12, seed=3)]
    found = torch.cat(rows).unique(dim=0)[:2]
    rows = [found[torch.arange(len(row)) % 2] for row in rows]
    flipped = (found[:, None] - torch.eye(music.TONES)).abs().flatten(0, 1)
    data = Sequences.of(rows, alphabet=torch.cat([found, flipped]).unique(dim=0))
    assert data.alphabet_size < len(EVERY_CHORD)
    edits = Substitutions(symbols=one_channel(data)).edits(data)
    assert edits.owner.bincount().tolist() == [music.TONES * len(row) for row in rows]


@pytest.mark.filterwarnings("ignore:the view.s. .* cannot be used with")  # of few data
def test_a_model_without_lengths_is_checked_given_the_lengths_if_the_data_lack_chords() -> None:
    rows = [EVERY_CHORD[x] for x in ([0, 1, 3, 1], [3, 0], [1, 0, 1], [0, 0, 3], [1, 1])]
    with pytest.warns(UserWarning, match="no probability to lengths"):
        check = ksd_check(
            partial(music.simple, args=options()), rows, parameters=SIMPLE, num_bootstrap=20, progress=False
        )
    assert "length" not in check["ksd"]["view"].values


@pytest.mark.slow
def test_tones_one_at_a_time_have_the_right_level() -> None:
    """The p-values of the true model are uniform, so their mean is 1/2; with the chords of the data alone it is 0.7."""
    ups = torch.full((6,), 0.2)

    def independent(sequences: torch.Tensor, lengths: torch.Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            for t in range(sequences.shape[1]):
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"y_{t}", pyro.distributions.Bernoulli(ups).to_event(1), obs=sequences[:, t])

    p_values = []
    for seed in range(200):
        drawn = torch.bernoulli(ups.expand(20, 5, -1), generator=torch.Generator().manual_seed(seed))
        rows = drawn.flatten(0, 1)
        near = (rows[:, None] - torch.eye(6)).abs().flatten(0, 1)
        data = Sequences.of(list(drawn), alphabet=torch.cat([rows, near]).unique(dim=0))
        near_edits = Substitutions(symbols=one_channel(data))
        check = ksd_check(
            independent, data, views="content-1", neighborhood=near_edits, num_bootstrap=99, seed=seed, progress=False
        )
        p_values.append(float(check["ksd"]["p_value_overall"]))
    found = torch.tensor(p_values)
    assert abs(found.mean() - 0.5) < 4 / math.sqrt(12 * len(found))
    assert (found <= 0.05).sum() <= 20  # of a binomial distribution with mean 10, less than 0.2 % above
