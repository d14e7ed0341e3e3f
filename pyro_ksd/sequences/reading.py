# SPDX-License-Identifier: Apache-2.0
"""Reading sequences in the forms in which users have them: strings, lists, columns, padded arrays."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from torch import Tensor

from pyro_ksd.sequences.alphabets import as_alphabet
from pyro_ksd.sequences.array_reading import check_table, coded_array, stripped_rows
from pyro_ksd.sequences.row_reading import Coded, coded_rows


def coded(data: Any, alphabet: int | Iterable[Hashable] | None, lengths: Any, pad: Any) -> Coded:
    """The codes of sequences; see :meth:`~pyro_ksd.sequences.Sequences.of` for what is accepted."""
    if isinstance(data, str | bytes):
        raise ValueError(f"expected several sequences, found the single string {data!r}; pass a list of strings")
    if not isinstance(data, Tensor | Iterable) or isinstance(data, Mapping):
        raise ValueError(f"expected a list of sequences or a padded array, found {type(data).__name__}")
    known = None if alphabet is None else as_alphabet(alphabet)
    if hasattr(data, "columns"):
        check_table(data)
    is_array = hasattr(data, "dtype") or hasattr(data, "dtypes")  # a pandas table has dtypes
    array = data if isinstance(data, Tensor) else (np.asarray(data) if is_array else None)
    if array is not None and array.ndim == 2:
        if not isinstance(array, Tensor) and array.dtype.kind in "OUS":
            return coded_rows(stripped_rows(array.tolist(), lengths, pad), known)
        return coded_array(array, known, lengths, pad)
    if array is not None and array.ndim != 1:
        raise ValueError(
            f"expected a padded array with 2 dimensions, found shape {list(array.shape)}; "
            "one sequence a row, one symbol a column"
        )
    if lengths is not None or pad is not None:
        raise ValueError("lengths= and pad= belong to padded arrays; a list of sequences needs neither")
    return coded_rows(list(data) if array is None else array.tolist(), known)
