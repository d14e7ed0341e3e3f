# SPDX-License-Identifier: Apache-2.0
"""Models in which every occurrence of something weighs more, or less, than in another model."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from pyro_ksd.common.option_checks import found, is_real
from pyro_ksd.edits.counts import Count, check_counts, count_changes, count_values
from pyro_ksd.edits.splices import Edits
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.wrappers.base import ModelWrapper
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.sequences.covariates import Covariates


class TiltedModel(ModelWrapper):
    r"""A model with some counts weighted by factors: :math:`p_\theta(x) \propto p(x) \prod_k e^{\theta_k c_k(x)}`.

    The result is unnormalized and cannot be sampled directly; :func:`~pyro_ksd.stein.zanella_sample` needs only ratios.
    It may even be improper: where longer sequences do not become less probable fast enough, a factor above 1 makes the
    sum over all sequences infinite. Factors that were estimated from data are then those of a distribution that agrees
    with the model on the lengths that the data have.

    :param model: the model within.
    :param log_factors: the log-factor :math:`\theta_k` of each count.

    >>> from pyro_ksd.examples import random_walk
    >>> tilted = TiltedModel(random_walk(3), {Count("ngram", (0, 1)): 2.0})
    >>> data = Sequences.of([[0, 1, 0, 1], [1, 0]], 3)
    >>> tilted.log_joint(data) - tilted.model.log_joint(data)
    tensor([4., 0.], dtype=torch.float64)
    """

    def __init__(self, model: SequenceModel, log_factors: Mapping[Count, float]) -> None:
        super().__init__(model)
        if not isinstance(log_factors, Mapping):
            raise ValueError(
                f"log_factors: expected log-factors by count, such as {{Count('length'): 0.1}}, found "
                f"{found(log_factors)}; pass a dictionary"
            )
        check_counts(list(log_factors), self.model.alphabet_size)
        for count, value in log_factors.items():
            if not is_real(value) or not math.isfinite(value):
                raise ValueError(f"log_factors: expected finite numbers, found {found(value)} for {count}")
        self.log_factors = dict(log_factors)
        self._counts = list(log_factors)
        self._theta = torch.tensor(list(log_factors.values()), dtype=torch.double)

    def log_joint(self, sequences: Sequences) -> Tensor:
        """``log p(x)`` up to a constant, double ``[N]``; ``-inf`` where the model within says so."""
        return self.model.log_joint(sequences).double() + count_values(self._counts, sequences) @ self._theta

    def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
        """``log p(y) - log p(x)`` for every edit ``y`` of its owner ``x``, double ``[E]``; every ``p(x) > 0``."""
        ratio = self.model.log_ratio(sequences, edits).double()
        edit, count, change = count_changes(self._counts, sequences, edits)
        return ratio.index_add(0, edit, change * self._theta[count])

    @property
    def can_draw(self) -> bool:
        return False

    def draw(self, num_sequences: int, generator: torch.Generator | None = None) -> Sequences:
        """Refuses to draw.

        :raises ValueError: always.
        """
        raise ValueError(
            f"draw: expected a model that can be sampled, found {self.name} tilted by factors, which cannot; see "
            "pyro_ksd.stein.zanella_sample, or pass a sampler: with_sampler(model, sampler)"
        )

    def draw_given(self, covariates: Covariates, generator: torch.Generator | None = None) -> Sequences:
        """Refuses to draw.

        :raises ValueError: always.
        """
        return self.draw(len(covariates), generator)

    def for_rows(self, begin: int) -> SequenceModel:
        return TiltedModel(self.model.for_rows(begin), self.log_factors)
