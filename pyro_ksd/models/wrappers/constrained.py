# SPDX-License-Identifier: Apache-2.0
"""Models conditioned on a set of permitted sequences."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from pyro_ksd.common.chunk_sizes import EDITED_SEQUENCES, in_chunks
from pyro_ksd.common.option_checks import check_function, check_number
from pyro_ksd.common.random_numbers import check_generator
from pyro_ksd.edits.splices import Edits
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.wrappers.base import ModelWrapper
from pyro_ksd.models.wrappers.rejection import MAX_PROPOSALS, accepted, accepted_given
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.sequences.covariates import Covariates, check_covariates

Predicate = Callable[[Sequences], Tensor]

_ADVICE = "raise max_proposals, or pass your own sampler: with_sampler(constrain(model, predicate), sampler)"


class ConstrainedModel(ModelWrapper):
    r"""A model given that its sequence lies in a set: :math:`p(x \mid A) \propto p(x)\,1[x \in A]`.

    Made by :func:`~pyro_ksd.models.constrain`.
    """

    def __init__(self, model: SequenceModel, predicate: Predicate, max_proposals: int = MAX_PROPOSALS) -> None:
        check_function("predicate", predicate, "sequences")
        max_proposals = check_number("max_proposals", max_proposals, least=1)
        super().__init__(model)
        self._predicate = predicate
        self._max_proposals = max_proposals

    def contains(self, sequences: Sequences) -> Tensor:
        """Which sequences lie in the set, boolean ``[N]``."""
        inside = self._predicate(sequences)
        if not isinstance(inside, Tensor) or inside.dtype != torch.bool or inside.shape != (len(sequences),):
            found = f"{inside.dtype} {list(inside.shape)}" if isinstance(inside, Tensor) else type(inside).__name__
            raise ValueError(
                f"predicate: expected a boolean tensor [{len(sequences)}], one entry for each sequence, found {found}; "
                "compare whole columns of tokens, or lengths, and reduce over the positions with any(1) or all(1)"
            )
        return inside

    def check_data(self, sequences: Sequences) -> None:
        """Checks that all data lie in the set.

        :raises ValueError: naming those that do not: data outside the set do not test the model given the set.
        """
        outside = (~self.contains(sequences)).nonzero().squeeze(1)
        if len(outside):
            few = zip(outside[:3].tolist(), sequences[outside[:3]].to_lists(), strict=True)
            shown = "; ".join(f"sequence {row}, {x}" for row, x in few)
            raise ValueError(
                f"expected data inside the set of the constrained model, found {len(outside)} of {len(sequences)} "
                f"sequences outside: {shown}{'; ...' if len(outside) > 3 else ''}; leave them out, as one leaves out "
                "what the constraint would not let through, or fix the predicate"
            )

    def log_joint(self, sequences: Sequences) -> Tensor:
        """``log p(x)`` up to a constant, ``[N]``; ``-inf`` outside the set."""
        return self.model.log_joint(sequences).masked_fill(~self.contains(sequences), -torch.inf)

    def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
        """``log p(y) - log p(x)`` for every edit ``y`` of its owner ``x``, ``[E]``; every ``p(x) > 0``.

        It is ``-inf`` where ``y`` leaves the set; the model is asked only for the edits that stay inside.
        """
        inside = stays_inside(self.contains, sequences, edits)
        ratio = self.model.log_ratio(sequences, edits.select(inside))
        return ratio.new_full((len(edits),), -torch.inf).index_copy_(0, inside, ratio)

    def draw(self, num_sequences: int, generator: torch.Generator | None = None) -> Sequences:
        """Independent sequences, by exact rejection of those that the model draws outside the set."""
        num_sequences = check_number("num_sequences", num_sequences, least=1)
        if generator is not None:
            check_generator(generator)
        return accepted(
            self.model.draw,
            self.contains,
            num_sequences,
            generator,
            max_proposals=self._max_proposals,
            advice=_ADVICE,
        )

    def draw_given(self, covariates: Covariates, generator: torch.Generator | None = None) -> Sequences:
        """Independent sequences, one for each row of covariates, by exact rejection."""
        check_covariates(covariates)
        return accepted_given(
            self.model.draw_given,
            self.contains,
            covariates,
            generator,
            max_proposals=self._max_proposals,
            advice=_ADVICE,
        )


def stays_inside(contains: Predicate, sequences: Sequences, edits: Edits) -> Tensor:
    """The indices of the edits that lead to sequences in a set, long ``[M]``."""
    index = torch.arange(len(edits))
    kept = [some[contains(edits.select(some).apply(sequences))] for some in in_chunks(index, EDITED_SEQUENCES)]
    return torch.cat([index[:0], *kept])


def constrain(model: SequenceModel, predicate: Predicate, *, max_proposals: int = MAX_PROPOSALS) -> ConstrainedModel:
    r"""The model given that its sequence satisfies a predicate: :math:`p(x \mid A) \propto p(x)\,1[x \in A]`.

    Sequences outside the set :math:`A` have probability zero. Where the model can be sampled, so can the result: by
    exact rejection, which draws from the model until enough sequences lie in the set.

    Edits that leave the set are impossible, so choose edits that move inside it. For a set that fixes the last symbol
    they are those of :class:`~pyro_ksd.edits.BeforeEnd`, which also suit the default view ``length``.

    :param predicate: takes ``N`` sequences, gives a boolean tensor ``[N]``. It must read the codes, ``tokens`` and
        ``lengths``, as sequences drawn from a model carry no names of symbols.
    :param max_proposals: how many sequences one call of ``draw`` may draw from the model before it gives up.

    >>> from pyro_ksd.models import MarkovSequence
    >>> def ends_with_1(x):
    ...     last = torch.arange(x.width) == x.lengths[:, None] - 1
    ...     return (last & (x.tokens == 1)).any(1)
    >>> coin = torch.tensor([0.5, 0.5])
    >>> model = constrain(MarkovSequence.from_transitions(coin, coin.expand(2, 2), stop=0.5), ends_with_1)
    >>> model.log_joint(Sequences.of([[1], [0, 1], [1, 0]])).exp()
    tensor([0.2500, 0.0625, 0.0000], dtype=torch.float64)
    >>> model.draw(4, torch.Generator().manual_seed(0)).to_lists()
    [[1, 0, 0, 1], [1, 1, 1], [1], [1]]
    """
    return ConstrainedModel(model, predicate, max_proposals)
