# SPDX-License-Identifier: Apache-2.0
"""Does a model give probabilities to lengths, or only to the symbols given the length?"""

from __future__ import annotations

import torch
from torch import Tensor

from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.wrappers.base import ModelWrapper
from pyro_ksd.sequences.container import Sequences

_ROWS = 40  # sequences among which a possible one is looked for
_NEAR = 12  # lengths up to the longest sequence at which a model is examined
_FAR = 100  # lengths up to which, at least, a model is examined
_GRID = 12  # lengths between the longest sequence and that
_STEPS = 40  # symbols after the longest sequence, one at a time


NO_LENGTH_DISTRIBUTION = """the model gives no probability to lengths (the total weight of all sequences of a \
length does not decrease with the length), so it can be checked only given the lengths, with substitutions. To have \
the lengths checked too, add a stop at each step,
    pyro.sample(f"stop_{t}", dist.Bernoulli(p), obs=(lengths == t + 1).float())   # inside the mask
or a distribution of the length,
    pyro.sample("length", dist.Poisson(rate), obs=lengths.float())                # inside the plate
or, to a score, a term that makes long sequences improbable,
    pyro.factor("length", -cost * lengths)                                        # inside the plate"""


def has_length_distribution(model: SequenceModel, data: Sequences, log_joint: Tensor | None = None) -> bool:
    """Whether the model gives probabilities to lengths, see :func:`why_given_lengths`."""
    return not why_given_lengths(model, data, log_joint)


def why_given_lengths(model: SequenceModel, data: Sequences, log_joint: Tensor | None = None) -> str:
    r"""Why a model can be checked only given the lengths; ``""`` for one that gives probabilities to lengths.

    A program that draws symbols, but neither a stop nor a length, gives the sequences of *every* length a total
    probability of 1: :math:`\sum_s p(x \cdot s) = p(x)` for all :math:`x`. A score without a term of the length may
    even grow, :math:`\sum_s p(x \cdot s) > p(x)`, and has no finite sum over all lengths. That is looked for along one
    sequence of the data, at its start and its end, and then, since a distribution may be uniform up to a maximum, far
    beyond: a distribution of the length makes the mass of some length smaller than that of a shorter one.

    :param log_joint: ``[N]``, the log-joints of the data, if they are known already.
    """
    if model.defines_lengths is not None:
        return "" if model.defines_lengths else NO_LENGTH_DISTRIBUTION
    if model.ends:
        return why_given_lengths(_WithoutEnd(model), _without_last(data), log_joint)
    try:
        return "" if _mass_falls(model, data, log_joint) else NO_LENGTH_DISTRIBUTION
    except ValueError as error:
        return (
            "the model cannot score sequences that are longer or shorter than the data, so it is checked given the "
            "lengths, with substitutions. If it has a distribution of the length, let it give such sequences the "
            f"log-probability -inf. What it said: {error}"
        )


def _mass_falls(model: SequenceModel, data: Sequences, log_joint: Tensor | None) -> bool:
    """Whether some further symbol makes the mass of a sequence smaller.

    :raises ValueError: if the model can score no sequence that is much longer, or shorter, than the data.
    """
    few = data[:_ROWS]
    own = model.log_joint(few) if log_joint is None else log_joint[:_ROWS]
    possible = torch.where(own > -torch.inf, few.lengths, 0)
    row = int(possible.argmax())
    longest = int(possible.max())
    if not longest:
        return True
    path = few.tokens[row, :longest]
    far = max(4 * int(data.lengths.max()), _FAR)
    _, near = _growth(model, data, row, path, range(1, longest, 1 + longest // _NEAR))
    if (near < 0).any():
        return True
    repeated = path.repeat(1 + far // longest)
    lengths = range(longest, far, 1 + far // _GRID)
    own, beyond = _growth(model, data, row, repeated, lengths)
    if (beyond < 0).any():
        return True
    if (own > -torch.inf).all():
        return False
    # The sequence, repeated, becomes impossible: because of its symbols, or because of its length?
    last = int((own > -torch.inf).nonzero().max())
    return _shrinks_step_by_step(model, data, row, repeated[: lengths[last]])


class _WithoutEnd(ModelWrapper):
    """A model of sequences that end with a symbol, as a model of what stands in front of it."""

    ends = ()
    defines_lengths = None

    def log_joint(self, sequences: Sequences) -> Tensor:
        wide = torch.nn.functional.pad(sequences.tokens, (0, 1))
        ended = [wide.scatter(1, sequences.lengths[:, None], end) for end in self.model.ends]
        values = [self.model.log_joint(sequences.derived(tokens, sequences.lengths + 1)) for tokens in ended]
        return torch.stack(values).logsumexp(0)


def _without_last(sequences: Sequences) -> Sequences:
    lengths = (sequences.lengths - 1).clamp(min=0)
    inside = torch.arange(sequences.width) < lengths[:, None]
    return sequences.derived(sequences.tokens * inside, lengths).narrowed()


def _shrinks_step_by_step(model: SequenceModel, data: Sequences, row: int, path: Tensor) -> bool:
    """Whether the mass falls along a path that goes on with the most probable symbol at each step."""
    for _ in range(_STEPS):
        own = model.log_joint(data.derived(path[None], torch.tensor([len(path)]), [row]))
        longer = _extensions(path[None], torch.tensor([len(path)]), data.alphabet_size)
        extended = model.log_joint(data.derived(longer, torch.full((len(longer),), len(path) + 1), [row] * len(longer)))
        if _change(own, extended[None]).item() < 0:
            return True
        path = longer[int(extended.argmax())]
    return False


def _growth(model: SequenceModel, data: Sequences, row: int, path: Tensor, lengths: range) -> tuple[Tensor, Tensor]:
    """How the mass changes by a further symbol, along a path.

    :param row: the sequence whose covariates count.
    :returns: the log-joints of its beginnings, ``[M]``; and the log-ratios of all their extensions by one symbol
        together to them, 0 for a change that is nothing but rounding, not negative for impossible beginnings.
    """
    ends = torch.tensor(lengths, dtype=torch.long)
    width = max(lengths, default=0)
    beginnings = path[:width].expand(len(ends), -1).masked_fill(torch.arange(width) >= ends[:, None], 0)
    longer = _extensions(beginnings, ends, data.alphabet_size)
    own = model.log_joint(data.derived(beginnings, ends, [row] * len(ends)))
    grown = ends.repeat_interleave(data.alphabet_size) + 1
    extended = model.log_joint(data.derived(longer, grown, [row] * len(longer)))
    return own, _change(own, extended.view(-1, data.alphabet_size))


def _extensions(tokens: Tensor, lengths: Tensor, alphabet_size: int) -> Tensor:
    """Each of the sequences ``[M, T]`` with each of the symbols after it, long ``[M S, T + 1]``."""
    longer = torch.nn.functional.pad(tokens, (0, 1)).repeat_interleave(alphabet_size, 0)
    end = lengths.repeat_interleave(alphabet_size)[:, None]
    return longer.scatter_(1, end, torch.arange(alphabet_size).repeat(len(tokens))[:, None])


def _change(own: Tensor, extended: Tensor) -> Tensor:
    """The log-ratios ``[M]`` of all extensions ``[M, S]`` of sequences to them, 0 where they differ by rounding."""
    total = extended.logsumexp(1)
    return (total - own).masked_fill(torch.isclose(total, own, rtol=1e-6, atol=1e-5), 0.0)
