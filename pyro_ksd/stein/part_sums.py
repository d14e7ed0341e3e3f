# SPDX-License-Identifier: Apache-2.0
"""The sums of each view over partitioned data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from pyro_ksd.common.checkpoints import Checkpoint, counted_if_stopped
from pyro_ksd.common.part_runs import TreeSum, run_and_add
from pyro_ksd.common.progress import progress_bar
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.part_survey import InSession, PossiblePart
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.signs import Signs
from pyro_ksd.stein.summation import KEPT_SECONDS, Summed, sum_views
from pyro_ksd.stein.sums import SteinSums
from pyro_ksd.stein.views import View
from pyro_ksd.stein.visits import Visits

_FIELDS = [field.name for field in fields(SteinSums) if field.name != "count"]
_PROBED = 10  # sequences whose features show that they can be summed


@dataclass(frozen=True, eq=False)
class PartSums:
    """What a visit of a part of the data gives, seen by ``V`` views; those of all parts add up.

    :param sums: one for each view.
    :param rates: for each operator of the views, the sum of all weights, double ``[1]``.
    """

    sums: list[SteinSums]
    rates: list[Tensor]

    def __add__(self, other: PartSums) -> PartSums:
        # Each part has taken as many draws of signs as fit into memory; the first ones are those of all.
        draws = min(self.sums[0].signed.shape[1], other.sums[0].signed.shape[1])
        pairs = zip(self.sums, other.sums, strict=True)
        return PartSums(
            [one.with_draws(draws) + more.with_draws(draws) for one, more in pairs],
            [one + more for one, more in zip(self.rates, other.rates, strict=True)],
        )

    def tensors(self) -> dict[str, Tensor]:
        """The sums as tensors by name, to be kept in a file."""
        found = {f"rate {index}": rate for index, rate in enumerate(self.rates)}
        for index, own in enumerate(self.sums):
            found[f"{index} count"] = torch.tensor(own.count)
            known = {name: getattr(own, name) for name in _FIELDS}
            found |= {f"{index} {name}": value for name, value in known.items() if value is not None}
        return found

    @staticmethod
    def of_tensors(tensors: Mapping[str, Tensor]) -> PartSums:
        """The sums from what :meth:`tensors` gave."""
        num_rates = sum(name.startswith("rate ") for name in tensors)
        num_views = sum(name.endswith(" count") for name in tensors)
        sums = []
        for index in range(num_views):
            values: dict[str, Any] = {name: tensors.get(f"{index} {name}") for name in _FIELDS}
            sums.append(SteinSums(count=int(tensors[f"{index} count"]), **values))
        return PartSums(sums, [tensors[f"rate {index}"] for index in range(num_rates)])


@dataclass(frozen=True, eq=False)
class _SumPart:
    """Sums up the views of one part."""

    model: SequenceModel
    views: Sequence[View]
    signs: Signs

    def __call__(self, part: PossiblePart) -> PartSums:
        visits = Visits(self.model, part.load(), self.views, kept_bytes=0, first_row=part.first_row)
        found = sum_views(visits, self.signs)
        return PartSums([own for own in found.under(0) if isinstance(own, SteinSums)], list(found.rates.values()))


def check_summable(model: SequenceModel, views: Sequence[View], sequences: Sequences) -> None:
    """Checks that the features of views can be summed, as partitioned data need.

    :param sequences: some of the data, all of them possible under the model.
    :raises ValueError: naming the view that compares each sequence with all others.
    """
    visits = Visits(model, sequences[:_PROBED].narrowed(), views, kept_bytes=0)
    for view, state in zip(views, sum_views(visits, Signs(0, 0)).under(0), strict=True):
        if not isinstance(state, SteinSums):
            raise ValueError(
                f"view {view.name!r}: expected a kernel with features for partitioned data, found one that compares "
                "each sequence with all others; take a LandmarkKernel, or some of the data: data.take(rows)"
            )


def run_in_threads(model: SequenceModel, views: Sequence[View]) -> bool:
    """Whether several threads may visit sequences at once."""
    return model.is_threadsafe and all(view.kernel.is_threadsafe for view in views)


def sum_parts(
    model: SequenceModel,
    parts: Sequence[PossiblePart],
    views: Sequence[View],
    signs: Signs,
    *,
    checkpoint: Checkpoint | None = None,
    progress: bool = False,
) -> Iterator[Summed]:
    """The sums of each view over all parts, with the draws of signs that fit into memory; then with the next ones.

    :param checkpoint: where the sums of finished parts are kept, and taken from.
    """
    done = 0
    while done < signs.num_draws:
        rest = signs.part(done, signs.num_draws - done)
        total = _total(_SumPart(model, views, rest), parts, checkpoint, progress)
        count = total.sums[0].signed.shape[1]
        operators = dict.fromkeys(view.operator for view in views)
        rates = dict(zip(operators, total.rates, strict=True))
        yield Summed([[own] for own in total.sums], rates, rest.part(0, count))
        done += count


def _total(
    task: _SumPart,
    parts: Sequence[PossiblePart],
    checkpoint: Checkpoint | None,
    progress: bool,
) -> PartSums:
    name = f"parts, draws from {task.signs.first_draw}"
    tree = _kept(checkpoint, name)
    kept = tree.count
    last = perf_counter()
    sizes = [len(part) for part in parts]
    in_threads = run_in_threads(task.model, task.views)
    steps = run_and_add(InSession.of(task, task.model), parts, tree, name="model", in_threads=in_threads)
    with progress_bar(total=sum(sizes), desc="Stein features", unit="sequences", show=progress) as bar:
        bar.update(sum(sizes[: tree.count]))
        while tree.count < len(parts):
            with counted_if_stopped(tree.count if checkpoint is None else kept, len(parts), "parts", checkpoint):
                count = next(steps)
                bar.update(sum(sizes[tree.count - count : tree.count]))
                if checkpoint is not None and perf_counter() - last >= KEPT_SECONDS:
                    _keep(checkpoint, name, tree)
                    kept = tree.count
                    last = perf_counter()
    found: PartSums = tree.value()
    return found


def _keep(checkpoint: Checkpoint, name: str, tree: TreeSum) -> None:
    """Keeps the sums of finished parts."""
    tensors = {"numbers": torch.tensor([tree.count, len(tree.branches)])}
    for index, branch in enumerate(tree.branches):
        tensors |= {f"{index}: {own}": value for own, value in branch.tensors().items()}
    checkpoint.put(name, tensors)


def _kept(checkpoint: Checkpoint | None, name: str) -> TreeSum:
    """The sums of finished parts, if some were kept."""
    tensors = None if checkpoint is None else checkpoint.get(name)
    if tensors is None:
        return TreeSum()
    count, num_branches = tensors["numbers"].tolist()
    branches = []
    for index in range(num_branches):
        prefix = f"{index}: "
        own = {known[len(prefix) :]: value for known, value in tensors.items() if known.startswith(prefix)}
        branches.append(PartSums.of_tensors(own))
    return TreeSum(count, branches)
