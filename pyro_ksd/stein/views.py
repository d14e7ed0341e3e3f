# SPDX-License-Identifier: Apache-2.0
"""Views: the ways in which a check looks at a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pyro_ksd.common.option_checks import check_instance, found
from pyro_ksd.edits.neighborhoods import Neighborhood, zs
from pyro_ksd.kernels.base import Kernel
from pyro_ksd.kernels.contiguous import ContiguousKernel
from pyro_ksd.kernels.embedding import EmbeddingKernel
from pyro_ksd.kernels.length import LengthKernel
from pyro_ksd.kernels.start import StartKernel
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.balancing import Balancing
from pyro_ksd.stein.operators import Operator, TailBlockOperator, ZanellaOperator

_PAIRS_BATCH = 2**11  # sequences whose pairs of channels are counted at once, of which there may be thousands


@dataclass(frozen=True, eq=False)
class View:
    """One way to look at a model: what is jumped between, and how sequences are compared.

    :param name: what a person calls it, such as ``"content-2"``.
    :param operator: the Stein operator. Views that share one operator object share its edits and log-ratios.
    :param kernel: the kernel.

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

    def __post_init__(self) -> None:
        check_instance("name", self.name, str, "a word, such as 'pairs'")
        check_instance("operator", self.operator, Operator, "an operator, such as ZanellaOperator()")
        check_instance("kernel", self.kernel, Kernel, "a kernel, such as HammingKernel()")


def check_views(views: object) -> None:
    """Checks that an argument holds views.

    >>> check_views([])
    Traceback (most recent call last):
    ValueError: views: expected a list of View objects, at least one, found []
    """
    if not isinstance(views, Sequence) or not views or not all(isinstance(view, View) for view in views):
        raise ValueError(f"views: expected a list of View objects, at least one, found {found(views)}")


def default_views(neighborhood: Neighborhood | None = None, balancing: str | Balancing = "barker") -> list[View]:
    """The views that together see most of what can be wrong with a sequence model.

    ``content-1``, ``content-2``, ``content-3`` compare single symbols, pairs and triples wherever they stand, ``start``
    the first symbol, ``length`` the length.

    :param neighborhood: the edits of all views but ``length``, which has those of its
        :attr:`~pyro_ksd.edits.Neighborhood.tail`; all substitutions, insertions and deletions if left out.
    :param balancing: the balancing function of all views.

    >>> [view.name for view in default_views()]
    ['content-1', 'content-2', 'content-3', 'start', 'length']
    """
    neighborhood = zs() if neighborhood is None else neighborhood
    operator = ZanellaOperator(neighborhood, balancing)
    content = [View(f"content-{t}", operator, ContiguousKernel(t)) for t in (1, 2, 3)]
    start = View("start", operator, StartKernel())
    return [*content, start, View("length", TailBlockOperator(balancing, neighborhood.tail), LengthKernel())]


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
