# SPDX-License-Identifier: Apache-2.0
"""Arrays in the form that files keep unchanged."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from torch import Tensor


def as_strings(values: Sequence[str]) -> npt.NDArray[np.object_]:
    """Strings in the form that netCDF gives back unchanged."""
    return np.array(values, dtype=object)


def as_numpy(tensor: Tensor) -> npt.NDArray[np.generic]:
    """A tensor as an array."""
    array: npt.NDArray[np.generic] = tensor.detach().numpy()
    return array
