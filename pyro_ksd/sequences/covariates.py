# SPDX-License-Identifier: Apache-2.0
"""What is known about each sequence beside its symbols: groups, numbers, prompts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pyro_ksd.common.option_checks import check_instance, found
from pyro_ksd.common.tensor_checks import shown

PROMPT_PAD = -1
"""What fills a row of covariates that is shorter than others."""

Values = Tensor | dict[str, Tensor]
"""Covariates as a program gets them: a tensor ``[N, ...]``, or several by name."""


@dataclass(frozen=True, eq=False)
class Covariates:
    """A row of covariates for each of ``N`` sequences. Edited sequences have the row of the sequence they come from.

    :param table: ``[R, ...]``, or several such tensors by name.
    :param rows: long ``[N]``, the row of the table of each sequence.

    >>> known = Covariates.of({"group": [0, 1, 0], "age": [31.0, 25.5, 60.0]}, 3)
    >>> known[torch.tensor([2, 2])].values["age"]
    tensor([60., 60.])
    """

    table: Values
    rows: Tensor

    @staticmethod
    def of(data: Any, num_sequences: int) -> Covariates:
        """The covariates in the form in which a user has them.

        :param data: a tensor, an array or a list with one entry for each sequence; several of them by name; or a pandas
            data frame, one row for each sequence. Whole numbers become long, columns of categories their codes, and
            fractions get the default dtype unless they are in a tensor. Lists of whole numbers of different lengths,
            such as prompts, are filled with -1.
        :raises ValueError: naming the covariate and the row, what was expected and the fix.
        """
        table: Values
        if isinstance(data, Mapping) or hasattr(data, "columns"):
            table = {str(name): _tensor(str(name), data[name]) for name in data}
            if not table:
                raise ValueError("covariates: expected at least one covariate, found none")
        else:
            table = _tensor("", data)
        for name, column in _named(table):
            if not column.ndim or len(column) != num_sequences:
                size = f"{len(column)} rows" if column.ndim else "a single number"
                raise ValueError(
                    f"covariates{name}: expected one row for each of the {num_sequences} sequences, in their order, "
                    f"found {size}"
                )
        return Covariates(table, torch.arange(num_sequences))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: slice | Tensor | Sequence[int]) -> Covariates:
        """The covariates of some of the sequences."""
        return Covariates(self.table, self.rows[index])

    @property
    def values(self) -> Values:
        """The covariates of the sequences: ``[N, ...]``, or several such tensors by name."""
        if isinstance(self.table, Tensor):
            return self.table[self.rows]
        return {name: column[self.rows] for name, column in self.table.items()}

    def repeated(self, times: int) -> Covariates:
        """The covariates of ``times`` data sets that follow each other."""
        return self[torch.arange(len(self)).repeat(times)]

    @staticmethod
    def cat(parts: Sequence[Covariates]) -> Covariates:
        """The covariates of all parts, one after the other.

        :raises ValueError: if the parts have different covariates.
        """
        first = parts[0]
        if all(part.table is first.table for part in parts):
            return Covariates(first.table, torch.cat([part.rows for part in parts]))
        columns = [dict(_named(part.values)) for part in parts]
        kinds = [{name: (column.dtype, column.shape[1:]) for name, column in own.items()} for own in columns]
        if any(kind != kinds[0] for kind in kinds):
            raise ValueError(
                f"parts: expected the same covariates in all of them, found {[_shown(part.table) for part in parts]}"
            )
        together = {name: torch.cat([own[name] for own in columns]) for name in columns[0]}
        rows = torch.arange(sum(map(len, parts)))
        if isinstance(first.table, Tensor):
            return Covariates(together[""], rows)
        return Covariates({name: together[f" {name!r}"] for name in first.table}, rows)

    def __repr__(self) -> str:
        return f"Covariates({len(self)}: {_shown(self.table)})"


def check_covariates(value: object) -> None:
    """Checks that an argument is :class:`Covariates`.

    >>> check_covariates([0, 1])
    Traceback (most recent call last):
    ValueError: covariates: expected those of sequences, sequences.covariates, found [0, 1]
    """
    check_instance("covariates", value, Covariates, "those of sequences, sequences.covariates")


def _named(table: Values) -> list[tuple[str, Tensor]]:
    """The tensors with their names, as a message shows them."""
    if isinstance(table, Tensor):
        return [("", table)]
    return [(f" {name!r}", column) for name, column in table.items()]


def _shown(table: Values) -> str:
    shapes = [f"{name}{['N', *column.shape[1:]]}".replace("'N'", "N") for name, column in _named(table)]
    return ", ".join(shape.strip() for shape in shapes)


def _tensor(name: str, column: Any) -> Tensor:
    """One covariate as a tensor on the CPU, without gradients: whole numbers as long, other tensors as they are.

    Fractions of arrays, frames and lists get the default dtype, that of most networks.
    """
    place = f" {name!r}" if name else ""
    if isinstance(column, Tensor):
        tensor = column.detach().cpu()
    elif isinstance(column, str | bytes) or not hasattr(column, "__len__"):
        raise ValueError(f"covariates{place}: expected numbers, one row for each sequence, found {found(column)}")
    else:
        tensor = _of_array(place, column)
    if tensor.is_complex() or tensor.is_meta:
        raise ValueError(f"covariates{place}: expected real numbers, found {shown(tensor)}")
    if tensor.isnan().any():
        row = int(tensor.isnan().nonzero()[0, 0]) if tensor.ndim else 0
        raise ValueError(
            f"covariates{place}: expected a number for each sequence, found NaN for sequence {row}; fill in missing "
            "values, or leave those sequences out"
        )
    is_whole = not tensor.is_floating_point() and tensor.dtype != torch.bool
    return tensor.long() if is_whole else tensor


def _of_array(place: str, column: Any) -> Tensor:
    """An array, a column of a data frame, or a list, as a tensor."""
    if hasattr(column, "cat"):  # a column of categories
        codes = torch.tensor(np.array(column.cat.codes))
        if (codes < 0).any():
            row = int((codes < 0).nonzero()[0])
            raise ValueError(
                f"covariates{place}: expected a category for each sequence, found none for sequence {row}; fill in "
                "missing values, or leave those sequences out"
            )
        return codes
    rows = list(column) if getattr(getattr(column, "dtype", None), "kind", "") == "O" else column
    ragged = _filled(rows)
    if ragged is not None:
        return ragged
    try:
        array = np.asarray(rows)
    except ValueError:  # lists of different lengths that are no codes
        raise ValueError(
            f"covariates{place}: expected numbers of one shape for all sequences, found lists of different lengths; "
            "pad them, and pass their lengths as another covariate"
        ) from None
    if array.dtype.kind not in "biuf":
        wrong = [one for one in array.ravel().tolist() if not isinstance(one, int | float)]
        raise ValueError(
            f"covariates{place}: expected numbers, found {found(wrong[0] if wrong else array.dtype)}; for names, pass "
            "categories, such as frame['group'].astype('category'), which come as codes"
        )
    tensor = torch.tensor(array.astype(np.int64) if array.dtype.kind == "u" else array)
    return tensor.to(torch.get_default_dtype()) if array.dtype.kind == "f" else tensor


def _filled(rows: Any) -> Tensor | None:
    """Lists of whole numbers of different lengths as long ``[N, P]``, filled with -1; ``None`` for anything else."""
    if not isinstance(rows, list | tuple) or not all(
        isinstance(row, list | tuple | Tensor | np.ndarray) for row in rows
    ):
        return None
    try:
        lists = [torch.as_tensor(row) for row in rows]
    except (TypeError, ValueError):  # other things than numbers
        return None
    whole = all((row.ndim == 1 and not row.is_floating_point()) or not len(row) for row in lists)
    if len({len(row) for row in lists}) < 2 or not whole:
        return None
    return torch.nn.utils.rnn.pad_sequence([row.long() for row in lists], batch_first=True, padding_value=PROMPT_PAD)
