# SPDX-License-Identifier: Apache-2.0
r"""Whether n-grams are off by more than a factor that is tolerated.

The factors are those of :mod:`~pyro_ksd.fit_tests.tilting`, each as if the model were right in all else. An n-gram is
*outside* if its whole interval lies outside of :math:`[1 / 1.25, 1.25]`. Its interval then has the coverage
:math:`1 - \alpha / D` for the :math:`D` n-grams of all views (Bonferroni), so that with probability :math:`1 - \alpha`
nothing is called outside that is not.

It is *within* if its interval with the coverage :math:`1 - \alpha` lies inside. That *all* n-grams are within is said
if each of them is: this test of the hypothesis that some n-gram is not has the level :math:`\alpha / 2` without any
correction for their number (Berger, 1982, *Multiparameter hypothesis testing and acceptance sampling*).

The limits 0.8 and 1.25 are those by which two drugs are called equivalent (Schuirmann, 1987, *A comparison of the two
one-sided tests procedure and the power approach for assessing the equivalence of average bioavailability*).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import pad

from pyro_ksd.common.random_numbers import seeded_generator
from pyro_ksd.edits.counts import Count
from pyro_ksd.edits.neighborhoods import Neighborhood
from pyro_ksd.fit_tests.absolute import GoodnessOfFit
from pyro_ksd.fit_tests.jumps import Jumps, scored_jumps
from pyro_ksd.fit_tests.tilting import ENOUGH, Tilts, tilt_each, tilts_at
from pyro_ksd.kernels.contiguous import ContiguousKernel
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.visits import Visits

FACTOR = 1.25
"""The factor that is tolerated, and its inverse."""

MOST_NGRAMS = 100
"""How many n-grams of a view are looked at, the most frequent ones in the data."""

_MOST_CHUNKS = 30  # of edits of large data, around sequences at even distances


@dataclass(frozen=True, eq=False)
class ToleratedFactors:
    """The factors of the most frequent n-grams of a view, ``D`` of them.

    :ivar view: the place of the view in the test.
    :ivar symbols: long ``[D, W]``, the codes of the symbols, padded with -1, the most frequent n-gram first.
    :ivar tilts: their factors; NaN where they cannot be estimated.
    :ivar is_within: boolean ``[D]``, whether a factor is within the tolerance.
    :ivar is_outside: boolean ``[D]``, whether it is outside of it.
    """

    view: int
    symbols: Tensor
    tilts: Tilts
    is_within: Tensor
    is_outside: Tensor


def tolerated_factors(result: GoodnessOfFit, sequences: Sequences, level: float) -> list[ToleratedFactors]:
    """The factors of the n-grams of each view that counts n-grams, compared with the tolerance.

    The model is not asked again where the log-ratios of the edits were kept.

    :param sequences: those of the test, or enough of them to know which n-grams are the most frequent ones.
    :param level: how often, at the most, an n-gram is wrongly called outside.

    >>> from pyro_ksd import default_views
    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.fit_tests import goodness_of_fit
    >>> data = random_walk(3, hold=0.12).draw(2000, torch.Generator().manual_seed(0))
    >>> found = goodness_of_fit(random_walk(3, hold=0.1), data, default_views()[:2], num_bootstrap=99)
    >>> for factors in tolerated_factors(found, data, level=0.05):
    ...     print(int(factors.is_within.sum()), "of", len(factors.symbols), "within")
    3 of 3 within
    7 of 9 within
    """
    kernels = {index: view.kernel for index, view in enumerate(result.views)}
    lengths = {index: kernel.lengths for index, kernel in kernels.items() if isinstance(kernel, ContiguousKernel)}
    symbols = {index: _most_frequent(own, sequences) for index, own in lengths.items()}
    total = sum(map(len, symbols.values()))
    found = []
    for index, ngrams in symbols.items():
        counts = [Count("ngram", tuple(code for code in row if code >= 0)) for row in ngrams.tolist()]
        if not counts:  # all sequences are too short
            continue
        jumps = _some_jumps(result.sample, result.views[index].operator.neighborhood, counts)
        tilts = tilt_each(jumps, len(counts), 1 - level)
        certain = tilts_at(jumps, tilts.log_factor, 1 - level / total)
        found.append(ToleratedFactors(index, ngrams, tilts, tilts.within(FACTOR), certain.outside(FACTOR)))
    return found


def _most_frequent(lengths: range, sequences: Sequences) -> Tensor:
    """The most frequent n-grams of the data, of some lengths: long ``[D, W]``."""
    tokens = sequences.padded(-1)
    size = sequences.alphabet_size
    ngrams = [torch.zeros(0, lengths[-1], dtype=torch.long)]
    times = [torch.zeros(0, dtype=torch.long)]
    for length in lengths:
        windows = (
            tokens.unfold(1, length, 1).flatten(0, 1) if length <= sequences.width else tokens.new_zeros(0, length)
        )
        digits = size ** torch.arange(length)
        codes, number = (windows[(windows >= 0).all(1)].long() @ digits).unique(return_counts=True)
        ngrams.append(pad(codes[:, None] // digits % size, (0, lengths[-1] - length), value=-1))
        times.append(number)
    order = torch.cat(times).argsort(descending=True, stable=True)[:MOST_NGRAMS]
    return torch.cat(ngrams)[order]


def _some_jumps(visits: Visits, around: Neighborhood, counts: list[Count]) -> list[Jumps]:
    """The edits that change some counts; of what is frequent, those around a random part of the sequences."""
    visits = visits.thinned(_MOST_CHUNKS)
    generator = seeded_generator(0)
    order = torch.randperm(len(visits.rows(around)), generator=generator).tolist()
    found: list[Jumps] = []
    share = torch.ones(len(counts), dtype=torch.double)
    for chunk in visits.chunks(around, order):
        jumps = scored_jumps(chunk.scored, counts)
        if not found:  # the same share of all chunks, which may differ
            changes = jumps.count.long().bincount(minlength=len(counts))
            share = (ENOUGH / (changes * len(order))).clamp(max=1.0)
        chance = torch.rand(jumps.num_sequences, generator=generator, dtype=torch.double)
        found.append(_thinned(jumps, chance, share))
    return found


def _thinned(jumps: Jumps, chance: Tensor, share: Tensor) -> Jumps:
    """The changes of each count in a share of the sequences.

    :param chance: ``[N]``, uniform random numbers of the sequences.
    :param share: ``[D]``.
    """
    owner = jumps.owner[jumps.edit.long()].long()
    kept = chance[owner] <= share[jumps.count.long()]
    edits, edit = jumps.edit[kept].long().unique(return_inverse=True)
    return replace(
        jumps,
        owner=jumps.owner[edits],
        log_ratio=jumps.log_ratio[edits],
        edit=edit.int(),
        count=jumps.count[kept],
        change=jumps.change[kept],
    )
