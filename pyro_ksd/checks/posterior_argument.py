# SPDX-License-Identifier: Apache-2.0
"""The argument ``posterior`` of a check."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import xarray as xr

from pyro_ksd.models.posterior.posterior_models import PosteriorModels
from pyro_ksd.results.containers import dataset
from pyro_ksd.results.posterior_groups import sampled_group


def draws_of(posterior: Any) -> Any:
    """Draws by name from the ``posterior`` group of an ArviZ container; anything else as it is."""
    if not _is_container(posterior):
        return posterior
    return {str(name): torch.as_tensor(values.values) for name, values in _group_of(posterior).data_vars.items()}


def posterior_group(posterior: Any, models: PosteriorModels) -> xr.Dataset:
    """The draws that a check took, as a group.

    :param posterior: where they come from; dimensions and labels of an ArviZ container are kept.
    """
    if _is_container(posterior):
        own = _group_of(posterior).isel(draw=models.chosen.tolist())
        return own.assign_coords(chain=np.arange(own.sizes["chain"]), draw=np.arange(own.sizes["draw"]))
    draws = {name: value.unflatten(0, (models.num_chains, -1)) for name, value in models.values.items()}
    return sampled_group(draws)


def _is_container(posterior: Any) -> bool:
    return isinstance(posterior, xr.DataTree) or hasattr(posterior, "groups")


def _group_of(container: Any) -> xr.Dataset:
    return dataset(container, "posterior").transpose("chain", "draw", ...)
