# SPDX-License-Identifier: Apache-2.0
"""Reading sequences in the forms in which users have them: strings, lists, columns, padded arrays."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from torch import Tensor

from pyro_ksd.sequences.alphabets import as_alphabet
from pyro_ksd.sequences.array_reading import check_single_column, coded_array, stripped_rows
from pyro_ksd.sequences.frame_reading import check_table
from pyro_ksd.sequences.row_reading import Coded, coded_rows
from pyro_ksd.sequences.text_reading import split_rows, warn_of_words
from pyro_ksd.sequences.vector_symbols import VectorAlphabet, as_vector_alphabet, coded_vectors, is_vectors


def coded(data: Any, alphabet: int | Iterable[Hashable] | None, sep: str | None, lengths: Any, pad: Any) -> Coded:
    """The codes of sequences; see :meth:`~pyro_ksd.sequences.Sequences.of` for what is accepted."""
    if isinstance(data, str | bytes):
        raise ValueError(f"expected several sequences, found the single string {data!r}; pass a list of strings")
    if not isinstance(data, Tensor | Iterable) or isinstance(data, Mapping):
        raise ValueError(f"expected a list of sequences or a padded array, found {type(data).__name__}")
    if is_vectors(data):
        return _coded_vectors(data, alphabet, sep, lengths, pad)
    known = None if alphabet is None else as_alphabet(alphabet)
    is_padded = lengths is not None or pad is not None
    if hasattr(data, "columns"):
        check_table(data, is_padded)
    is_array = hasattr(data, "dtype") or hasattr(data, "dtypes")  # a pandas table has dtypes
    array = data if isinstance(data, Tensor) else (np.asarray(data) if is_array else None)
    if array is not None and array.ndim == 2:
        if sep is not None:
            raise ValueError(
                f"sep: expected strings to split, found an array of shape {list(array.shape)}; leave it out"
            )
        if isinstance(array, Tensor) or array.dtype.kind not in "OUS":
            return coded_array(array, known, lengths, pad)
        if known is None and not is_padded:
            check_single_column(array.tolist())
        return coded_rows(stripped_rows(array.tolist(), lengths, pad), known)
    if array is not None and array.ndim != 1:
        raise ValueError(
            f"expected a padded array with 2 dimensions, found shape {list(array.shape)}; "
            "one sequence a row, one symbol a column"
        )
    if is_padded:
        name = "pad" if lengths is None else "lengths"
        raise ValueError(
            f"{name}: expected a padded array beside it, found a list of sequences, which needs neither lengths= nor "
            "pad=; leave it out"
        )
    rows = list(data) if array is None else array.tolist()
    if sep is not None:
        rows = split_rows(rows, sep, known)
    elif known is None:
        warn_of_words(rows)
    return coded_rows(rows, known)


def _coded_vectors(data: Any, alphabet: Any, sep: Any, lengths: Any, pad: Any) -> Coded:
    """The codes of sequences whose symbols are vectors."""
    for name, option in (("sep", sep), ("pad", pad)):
        if option is not None:
            raise ValueError(f"{name}: expected none for symbols that are vectors, found {option!r}; pass lengths=")
    if isinstance(data, list | tuple) and lengths is not None:
        raise ValueError("lengths: expected a padded array [N, T, C] beside it, found a list; leave it out")
    if alphabet is None or isinstance(alphabet, VectorAlphabet):
        return coded_vectors(data, alphabet, lengths)
    return coded_vectors(data, as_vector_alphabet(alphabet), lengths)
