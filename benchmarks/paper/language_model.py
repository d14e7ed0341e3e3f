# SPDX-License-Identifier: Apache-2.0
"""Power for a language model that is to ask questions: some of the data are its questions after another prompt.

The paper has GPT-2. Here it is a small network over words, :mod:`benchmarks.paper.question_network`, which needs no
download, and several of them: each repetition trains its own. The two prompts are among the most frequent beginnings of
short questions in its text.

Top-k filtering makes many questions after one prompt impossible after the other. One of them is proof enough that the
model is wrong; how often a data set has one is counted as a test of its own. For the Stein tests the paper's appendix
is followed to the letter: all words have *some* probability, far too small to matter for what the model makes, and the
last word of a question is replaced by the top-k words there, whether it is one of them or not. (If it is not, there is
no way back. That concerns only questions that the model hardly ever makes, so the Stein identity holds all the same.)

The maximum mean discrepancy has the 100 samples of the paper, which are too many for the wild bootstrap of this
package: it exchanges data with as many samples. It is calibrated by parametric bootstrap instead, which has the exact
level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from time import perf_counter

import torch
from torch import Tensor
from torch.nn.functional import pad

from benchmarks.paper.experiment import LEVEL, Cell, Experiment
from benchmarks.paper.figures import curves
from benchmarks.paper.question_network import trained
from benchmarks.paper.testing import MMDTest, Scale, rejections
from pyro_ksd.common.row_groups import distinct_rows
from pyro_ksd.edits.neighborhoods import BeforeEnd, Neighborhood
from pyro_ksd.edits.prefix_neighborhoods import Candidates, PrefixSubstitutions, prefix_zs
from pyro_ksd.fit_tests.null_draws import rademacher
from pyro_ksd.fit_tests.statistics import p_value, u_statistic, weighted_u_statistics
from pyro_ksd.kernels import ContiguousKernel
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.models import AutoregressiveModel
from pyro_ksd.models.distributions.sampling import PAD
from pyro_ksd.models.wrappers.sampler import SampledModel, with_sampler
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.assembly import stein_matrices
from pyro_ksd.stein.operators import ZanellaOperator
from pyro_ksd.stein.views import View

PROMPTS = ("do you", "are you")
_TOP_K = 16
_LONGEST = 5
_SIZE = 50
_FLOOR = 1e-6
_KERNEL = ContiguousKernel(1)


@dataclass(frozen=True)
class MixtureJob:
    """One network, and all weights of the other prompt.

    :param prompts: that of the model, and the other one.
    :param epochs: how long the network is trained.
    """

    prompts: tuple[str, str]
    weights: tuple[float, ...]
    scale: Scale
    repetition: int
    epochs: int = 8

    @property
    def key(self) -> tuple[int, ...]:
        return (self.repetition,)

    def measure(self, generator: torch.Generator) -> list[Cell]:
        lm = trained(self.repetition, self.epochs)
        model, other = (lm.questions(prompt, _LONGEST, _TOP_K) for prompt in self.prompts)
        laws: dict[str | float, SampledModel] = {weight: mixture(model, other, weight) for weight in self.weights}
        data = Sequences.cat([law.draw(self.scale.runs * _SIZE, generator) for law in laws.values()])
        positive = lm.questions(self.prompts[0], _LONGEST, _TOP_K, floor=_FLOOR)
        candidates = with_what_is_there(model.candidates)
        zs = BeforeEnd(prefix_zs(candidates, _TOP_K + 1, locations=1))
        substitutions = BeforeEnd(PrefixSubstitutions(candidates, _TOP_K + 1, locations=1))
        mmd = MMDTest(_KERNEL, num_samples=100)
        return [
            *self._stein("KSD, ZS", positive, zs, data, generator),
            *self._stein("KSD, ZS′", positive, substitutions, data, generator),
            *rejections(model, laws, _SIZE, lambda _: {"MMD": mmd}, self.scale, generator, self.repetition),
            *self._impossible(model, data),
        ]

    def _stein(
        self,
        name: str,
        model: AutoregressiveModel,
        neighborhood: Neighborhood,
        data: Sequences,
        generator: torch.Generator,
    ) -> list[Cell]:
        started = perf_counter()
        matrices = stein_matrices_of_sets(model, View(name, ZanellaOperator(neighborhood), _KERNEL), data, _SIZE)
        observed = [u_statistic(matrix) for matrix in matrices]
        seconds = (perf_counter() - started) / len(matrices)
        rejected = []
        for statistic, matrix in zip(observed, matrices, strict=True):
            null = weighted_u_statistics(matrix, rademacher(self.scale.num_bootstrap, _SIZE, generator))
            rejected.append(bool(p_value(statistic, null) <= LEVEL))
        return self._cells(name, rejected, seconds)

    def _impossible(self, model: AutoregressiveModel, data: Sequences) -> list[Cell]:
        started = perf_counter()
        found = (model.log_joint(data) == -torch.inf).view(-1, _SIZE).any(1)
        return self._cells("an impossible question", found.tolist(), (perf_counter() - started) / len(found))

    def _cells(self, name: str, rejected: Sequence[bool], seconds: float) -> list[Cell]:
        """The cells of one test, whose decisions are ordered by weight."""
        runs = self.scale.runs
        return [
            Cell(self.repetition, weight, name, runs, sum(rejected[index * runs : (index + 1) * runs]), seconds)
            for index, weight in enumerate(self.weights)
        ]


def mixture(model: AutoregressiveModel, other: AutoregressiveModel, weight: float) -> SampledModel:
    """A law to draw from: each sequence comes from the other model with the probability ``weight``."""

    def sampler(num_sequences: int, generator: torch.Generator) -> Sequences:
        both = Sequences.cat([one.draw(num_sequences, generator) for one in (model, other)])
        chosen = torch.rand(num_sequences, generator=generator) < weight
        return both[torch.arange(num_sequences) + num_sequences * chosen]

    return with_sampler(model, sampler)


def with_what_is_there(candidates: Candidates) -> Candidates:
    """Counts the symbol behind a prefix among its candidates, also if it is none of them."""

    def found(sequences: Sequences, top: int) -> Tensor:
        codes = candidates(sequences, top - 1)
        here = pad(sequences.padded(PAD), (0, 1), value=PAD)[..., None]
        return torch.cat([codes, here.masked_fill((codes == here).any(-1, keepdim=True), PAD)], -1)

    return found


def stein_matrices_of_sets(model: AutoregressiveModel, view: View, data: Sequences, size: int) -> list[FeatureMatrix]:
    """The Stein features of each data set of ``size`` sequences that follow each other; each sequence is asked once."""
    first, inverse = distinct_rows(torch.cat([data.lengths[:, None], data.tokens], 1))
    [matrix] = stein_matrices(model, data[first], [view])
    features = matrix.features
    assert features is not None
    values = features.values.to_dense() if features.values.is_sparse else features.values
    return [FeatureMatrix(values[rows]) for rows in inverse.split(size)]


def _jobs(quick: bool) -> list[MixtureJob]:
    if quick:
        return [MixtureJob(PROMPTS, (0.0, 0.5), Scale(4, 20, 19), repetition=0, epochs=1)]
    weights = tuple(torch.linspace(0.0, 0.5, 9, dtype=torch.double).tolist())
    return [MixtureJob(PROMPTS, weights, Scale(100, 1000), repetition) for repetition in range(10)]


LANGUAGE_MODEL = Experiment(
    name="language_model",
    title="Questions of a language model after another prompt",
    axis=f"share of questions after “{PROMPTS[1]}”",
    jobs=_jobs,
    settings={
        "model": f"questions after “{PROMPTS[0]}” of a recurrent network over words, top-{_TOP_K} filtering",
        "data": f"mixed with questions after “{PROMPTS[1]}”",
        "text": f"chatterbot-corpus {version('chatterbot-corpus')}, English",
        "sequences": _SIZE,
        "longest sequence": f"{_LONGEST} words after the prompt, with the question mark",
        "kernel": "CSK, t = 1",
        "neighborhood": f"the {_TOP_K} most probable words at the last place before the question mark, J = 1",
        "probability of all other words": _FLOOR,
        "bootstrap": "KSD: wild with random signs, 100 draws; MMD: parametric, 100 of a pool of 1,000 draws",
        "MMD samples": 100,
        "repetitions": "10 networks, 100 runs each",
    },
    draw=curves,
)
