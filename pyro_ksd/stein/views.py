# SPDX-License-Identifier: Apache-2.0
"""Views: the ways in which a check looks at a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from pyro_ksd.common.option_checks import check_instance, check_positive, found
from pyro_ksd.edits.neighborhoods import Neighborhood, zs
from pyro_ksd.kernels.base import Kernel
from pyro_ksd.kernels.composition import CompositionKernel
from pyro_ksd.kernels.contiguous import ContiguousKernel
from pyro_ksd.kernels.embedding import EmbeddingKernel
from pyro_ksd.kernels.end import EndKernel
from pyro_ksd.kernels.ends import EndsKernel
from pyro_ksd.kernels.length import LengthKernel
from pyro_ksd.kernels.mirror import MirrorKernel
from pyro_ksd.kernels.position import PositionKernel
from pyro_ksd.kernels.repeats import RepeatsKernel
from pyro_ksd.kernels.skip import SkipKernel
from pyro_ksd.kernels.start import StartKernel
from pyro_ksd.kernels.surprise import SurpriseKernel
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.balancing import Balancing, as_balancing, tempered
from pyro_ksd.stein.operators import HeatBathOperator, Operator, TailBlockOperator, ZanellaOperator

_PAIRS_BATCH = 2**11  # sequences whose pairs of channels are counted at once, of which there may be thousands


@dataclass(frozen=True, eq=False)
class View:
    """One way to look at a model: what is jumped between, and how sequences are compared.

    :param name: what a person calls it, such as ``"content-2"``.
    :param operator: the Stein operator. Views that share one operator object share its edits and log-ratios.
    :param kernel: the kernel.
    :param weight: how much the view counts in the decision of all views together.

    >>> from pyro_ksd import ksd_check
    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.kernels import HammingKernel
    >>> view = View("whole sequences", ZanellaOperator(), HammingKernel())
    >>> options = {"views": ["length", view], "num_bootstrap": 20, "progress": False}
    >>> check = ksd_check(random_walk(3), ["abc", "ab", "ba", "bca"], **options)
    >>> check["ksd"]["view"].values.tolist()
    ['length', 'whole sequences']
    """

    name: str
    operator: Operator
    kernel: Kernel[Any]
    weight: float = 1.0

    def __post_init__(self) -> None:
        check_instance("name", self.name, str, "a word, such as 'pairs'")
        check_instance("operator", self.operator, Operator, "an operator, such as ZanellaOperator()")
        check_instance("kernel", self.kernel, Kernel, "a kernel, such as HammingKernel()")
        check_positive("weight", self.weight)

    def under(self, model: SequenceModel) -> View:
        """The view for another model, such as one that was fitted anew."""
        operator = self.operator.under(model)
        return self if operator is self.operator else replace(self, operator=operator)


def check_views(views: object) -> None:
    """Checks that an argument holds views.

    >>> check_views([])
    Traceback (most recent call last):
    ValueError: views: expected a list of View objects, at least one, found []
    """
    if not isinstance(views, Sequence) or not views or not all(isinstance(view, View) for view in views):
        raise ValueError(f"views: expected a list of View objects, at least one, found {found(views)}")


def default_views(
    neighborhood: Neighborhood | None = None,
    balancing: str | Balancing = "barker",
    length: View | None = None,
) -> list[View]:
    """The views that together see most of what can be wrong with a sequence model.

    They ask five questions, and each of these counts the same in the decision of all views together; views of one
    question share its weight.

    - What do sequences consist of? ``content-1``, ``content-2`` and ``content-3`` compare single symbols, pairs and
      triples wherever they stand.
    - How do they begin? ``start`` compares the first symbol.
    - How long are they? ``length``.
    - How probable are they under the model? ``surprise``.
    - How are they arranged? ``skip`` compares pairs of symbols at distances 2 and 3, ``position`` symbols by their
      position modulo 6, ``mirror`` how much of a sequence reads the same backwards, ``repeats`` runs of one symbol.

    :param neighborhood: the edits of all views but ``length``, which has those of its
        :attr:`~pyro_ksd.edits.Neighborhood.tail`; all substitutions, insertions and deletions if left out.
    :param balancing: the balancing function of ``content``, ``length`` and ``surprise``; the others draw symbols anew,
        see :class:`~pyro_ksd.stein.HeatBathOperator`.
    :param length: the view of the length, such as that of :func:`~pyro_ksd.stein.length_view`; the square of the length
        if left out.

    >>> [view.name for view in default_views()]  # doctest: +NORMALIZE_WHITESPACE
    ['content-1', 'content-2', 'content-3', 'start', 'length', 'surprise',
     'skip', 'position', 'mirror', 'repeats']
    """
    neighborhood = zs() if neighborhood is None else neighborhood
    rates = as_balancing(balancing)
    jumps = ZanellaOperator(neighborhood, rates)
    redraws = _symbol_operator(neighborhood, jumps)
    content = [View(f"content-{t}", jumps, ContiguousKernel(t), weight=1 / 3) for t in (1, 2, 3)]
    if length is None:
        length = View("length", TailBlockOperator(rates, neighborhood.tail), LengthKernel())
    return [
        *content,
        View("start", redraws, StartKernel()),
        length,
        View("surprise", ZanellaOperator(neighborhood, tempered(rates)), SurpriseKernel()),
        View("skip", redraws, SkipKernel((2, 3)), weight=1 / 4),
        View("position", redraws, PositionKernel(6), weight=1 / 4),
        View("mirror", redraws, MirrorKernel(), weight=1 / 4),
        View("repeats", redraws, RepeatsKernel(4), weight=1 / 4),
    ]


def further_views(neighborhood: Neighborhood | None = None, balancing: str | Balancing = "barker") -> list[View]:
    """Views that a check takes only if it is asked to.

    ``end`` compares the last symbol, ``ends`` the first with the last, ``composition`` how uneven the symbols of each
    sequence are.

    >>> [view.name for view in further_views()]
    ['end', 'ends', 'composition']
    """
    neighborhood = zs() if neighborhood is None else neighborhood
    redraws = _symbol_operator(neighborhood, ZanellaOperator(neighborhood, as_balancing(balancing)))
    return [
        View("end", redraws, EndKernel()),
        View("ends", redraws, EndsKernel()),
        View("composition", redraws, CompositionKernel()),
    ]


def _symbol_operator(neighborhood: Neighborhood, jumps: Operator) -> Operator:
    """What draws symbols anew, or all jumps where the neighborhood has no substitutions."""
    return HeatBathOperator(neighborhood) if "substitution" in neighborhood.kinds else jumps


def channel_views(neighborhood: Neighborhood, balancing: str | Balancing = "barker") -> list[View]:
    """Views of sequences whose symbols are vectors, too many to be compared as a whole.

    ``channels`` compares how often each channel is on, ``channels-2`` how often it is on in two steps that follow each
    other, ``channel-pairs`` how often two channels are on together.

    :param neighborhood: the edits of all views, such as those that switch one channel.
    :param balancing: the balancing function of all views.

    >>> [view.name for view in channel_views(zs())]
    ['channels', 'channels-2', 'channel-pairs']
    """
    operator = ZanellaOperator(neighborhood, balancing)
    return [
        View("channels", operator, EmbeddingKernel(channel)),
        View("channels-2", operator, EmbeddingKernel(repeated_channel)),
        View("channel-pairs", operator, EmbeddingKernel(channel_pair, _PAIRS_BATCH)),
    ]


def channel(sequences: Sequences) -> Tensor:
    """The sum of each channel over the steps of each sequence, double ``[N, C]``.

    >>> import torch
    >>> channel(Sequences.of([torch.tensor([[0, 1], [1, 1]])]))
    tensor([[1., 2.]], dtype=torch.float64)
    """
    return _vectors(sequences).sum(1)


def repeated_channel(sequences: Sequences) -> Tensor:
    """The sum of the products of each channel in neighboring steps, double ``[N, C]``.

    >>> import torch
    >>> repeated_channel(Sequences.of([torch.tensor([[0, 1], [1, 1]])]))
    tensor([[0., 1.]], dtype=torch.float64)
    """
    vectors = _vectors(sequences)
    return (vectors[:, 1:] * vectors[:, :-1]).sum(1)


def channel_pair(sequences: Sequences) -> Tensor:
    """The sum of the products of each two channels in the same step, double ``[N, C (C - 1) / 2]``.

    >>> import torch
    >>> channel_pair(Sequences.of([torch.tensor([[0, 1], [1, 1]])]))
    tensor([[1.]], dtype=torch.float64)
    """
    vectors = _vectors(sequences)
    count = vectors.shape[2]
    one, other = torch.triu_indices(count, count, offset=1)
    return (vectors.transpose(1, 2) @ vectors)[:, one, other]


def _vectors(sequences: Sequences) -> Tensor:
    """The vectors of sequences, double ``[N, T, C]``, 0 after the ends."""
    if sequences.vectors is None:
        raise ValueError(
            "sequences: expected symbols that are vectors, found single ones; make them from arrays [T, C]"
        )
    return sequences.vectors.double()[sequences.tokens] * sequences.mask[..., None]
