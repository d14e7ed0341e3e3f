# SPDX-License-Identifier: Apache-2.0
"""Power for a language model that is to ask questions: some of the data are its questions after another prompt.

The paper has GPT-2; here it is a small network over words (:mod:`benchmarks.paper.question_network`), which needs no
download. Of its prompts, these two make many questions, and most questions after one of them are possible after the
other. A question that is not is proof enough that the model is wrong. So that the discrepancy itself is seen, the Stein
tests look at the possible questions of a data set alone, and a test of its own tells how often some question was
impossible.

The maximum mean discrepancy has the 100 samples of the paper, which are too many for the wild bootstrap of this package
(it exchanges data with as many samples). It is calibrated by parametric bootstrap instead, which has the exact level.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from time import perf_counter

import torch
from torch import Tensor

from benchmarks.paper.experiment import LEVEL, Cell, Experiment
from benchmarks.paper.figures import curves
from benchmarks.paper.question_network import EPOCHS, trained
from benchmarks.paper.testing import MMDTest, Scale, rejections
from pyro_ksd.bootstrap import rademacher
from pyro_ksd.kernels import ContiguousKernel
from pyro_ksd.kernels.matrices import FeatureMatrix
from pyro_ksd.models import AutoregressiveModel
from pyro_ksd.models.evaluated import distinct
from pyro_ksd.models.sampled import SampledModel, with_sampler
from pyro_ksd.neighborhoods import BeforeEnd, Neighborhood
from pyro_ksd.operators import ZanellaOperator
from pyro_ksd.prefix_neighborhoods import PrefixSubstitutions, prefix_zs
from pyro_ksd.sequences import Sequences
from pyro_ksd.statistics import p_value, u_statistic, weighted_u_statistics
from pyro_ksd.stein import stein_matrices
from pyro_ksd.views import View

PROMPT, OTHER_PROMPT = "do you", "are you"
_TOP_K, _LONGEST, _SIZE = 16, 5, 50
_KERNEL = ContiguousKernel(1)


@dataclass(frozen=True)
class MixtureJob:
    """The tests at one weight of the other prompt.

    :param epochs: how long the network is trained.
    """

    weight: float
    scale: Scale
    epochs: int

    @property
    def key(self) -> tuple[int, ...]:
        return (round(1e4 * self.weight),)

    def measure(self, generator: torch.Generator) -> list[Cell]:
        lm = trained(self.epochs)
        model, other = (lm.questions(p, top_k=_TOP_K, max_length=_LONGEST) for p in (PROMPT, OTHER_PROMPT))
        law = mixture(model, other, self.weight)
        data = law.draw(self.scale.runs * _SIZE, generator)
        around = {
            "KSD, ZS": BeforeEnd(prefix_zs(model.candidates, _TOP_K, locations=1)),
            "KSD, ZS′": BeforeEnd(PrefixSubstitutions(model.candidates, _TOP_K, locations=1)),
        }
        mmd = MMDTest(_KERNEL, num_samples=100)
        return [
            *(self._stein(name, model, neighborhood, data, generator) for name, neighborhood in around.items()),
            *rejections(model, {self.weight: law}, _SIZE, lambda _: {"MMD": mmd}, self.scale, generator),
            self._impossible(model, data),
        ]

    def _stein(
        self,
        name: str,
        model: AutoregressiveModel,
        neighborhood: Neighborhood,
        data: Sequences,
        generator: torch.Generator,
    ) -> Cell:
        started = perf_counter()
        matrices = stein_features(model, View(name, ZanellaOperator(neighborhood), _KERNEL), data, _SIZE)
        observed = [u_statistic(matrix) for matrix in matrices]
        seconds = (perf_counter() - started) / len(matrices)
        rejected = 0
        for statistic, matrix in zip(observed, matrices, strict=True):
            null = weighted_u_statistics(matrix, rademacher(self.scale.num_bootstrap, _SIZE, generator))
            rejected += int(p_value(statistic, null) <= LEVEL)
        return Cell(0, self.weight, name, len(matrices), rejected, seconds)

    def _impossible(self, model: AutoregressiveModel, data: Sequences) -> Cell:
        started = perf_counter()
        found = (model.log_joint(data) == -torch.inf).view(-1, _SIZE).any(1)
        seconds = (perf_counter() - started) / len(found)
        return Cell(0, self.weight, "an impossible question", len(found), int(found.sum()), seconds)


def mixture(model: AutoregressiveModel, other: AutoregressiveModel, weight: float) -> SampledModel:
    """A law to draw from: each sequence comes from the other model with the probability ``weight``."""

    def sampler(num_sequences: int, generator: torch.Generator) -> Sequences:
        both = Sequences.cat([one.draw(num_sequences, generator) for one in (model, other)])
        chosen = torch.rand(num_sequences, generator=generator) < weight
        return both[torch.arange(num_sequences) + num_sequences * chosen]

    return with_sampler(model, sampler)


def stein_features(model: AutoregressiveModel, view: View, data: Sequences, size: int) -> list[FeatureMatrix]:
    """The Stein features of each data set of ``size`` sequences that follow each other; 0 for impossible sequences.

    Zeros change the statistic of the other sequences by a factor, the same for the data and for the null draws.
    """
    first, inverse = distinct(data)
    possible = (model.log_joint(data[first]) > -torch.inf).nonzero().squeeze(1)
    [matrix] = stein_matrices(model, data[first[possible]], [view])
    values = _dense(matrix)
    known = values.new_zeros(len(first), values.shape[1]).index_copy_(0, possible, values)
    return [FeatureMatrix(known[rows]) for rows in inverse.split(size)]


def _dense(matrix: object) -> Tensor:
    assert isinstance(matrix, FeatureMatrix)
    return matrix.values.to_dense() if matrix.values.is_sparse else matrix.values


def _jobs(quick: bool) -> list[MixtureJob]:
    weights = (0.0, 0.5) if quick else tuple(torch.linspace(0.0, 0.5, 9, dtype=torch.double).tolist())
    scale = Scale(4, 20, 19) if quick else Scale(1000, 2000)
    return [MixtureJob(weight, scale, 1 if quick else EPOCHS) for weight in weights]


_SETTINGS = {
    "model": f"questions after “{PROMPT}” of a recurrent network over words, top-{_TOP_K} filtering",
    "data": f"questions after “{PROMPT}”, mixed with those after “{OTHER_PROMPT}”",
    "text": f"chatterbot-corpus {version('chatterbot-corpus')}, English",
    "sequences": _SIZE,
    "longest sequence": f"{_LONGEST} words after the prompt, with the question mark",
    "kernel": "CSK, t = 1",
    "neighborhood": f"the {_TOP_K} most probable words at the last place before the question mark, J = 1",
    "bootstrap": "KSD: wild with random signs, 100 draws; MMD: parametric, 100 of a pool of 2,000 draws",
    "MMD samples": 100,
    "runs": 1000,
}
LANGUAGE_MODEL = Experiment(
    name="language_model",
    title="Questions of a language model after another prompt",
    axis="share of the other prompt",
    jobs=_jobs,
    settings=_SETTINGS,
    draw=curves,
)
