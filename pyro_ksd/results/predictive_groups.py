# SPDX-License-Identifier: Apache-2.0
"""Posterior predictive checks as xarray groups."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from pyro_ksd.common.option_checks import check_instance, check_mapping
from pyro_ksd.fit_tests.predictive import PosteriorPredictive
from pyro_ksd.results.arrays import as_numpy, as_strings
from pyro_ksd.results.containers import POSTERIOR_OF_CHECK
from pyro_ksd.results.kept_data import KeptData
from pyro_ksd.results.misfit_groups import add_places, in_rows
from pyro_ksd.results.result_tree import ResultTree
from pyro_ksd.results.sequence_groups import log_likelihood_group
from pyro_ksd.results.shared_groups import (
    Settings,
    add_replicates,
    check_data,
    common_groups,
    meanings_of,
    seconds_attributes,
    stamped,
)
from pyro_ksd.sequences.container import Sequences


def predictive_datatree(
    result: PosteriorPredictive,
    sequences: Sequences,
    impossible_sites: Mapping[int, str],
    *,
    settings: Settings,
    posterior: xr.Dataset | None = None,
) -> ResultTree:
    """A posterior predictive check as the groups of :func:`~pyro_ksd.results.to_datatree`, with the group ``ksd_ppc``.

    ``ksd`` holds means over the posterior draws (of contributions, attributions and features: over at most 25 of them,
    evenly spaced), ``ksd_null`` the statistics of the replicated data, and ``ksd_ppc`` the statistics of each draw:
    ``realized``, ``replicated`` and their ``difference``, ``(chain, draw, view)``. ``posterior_predictive`` has the
    replicated data of each draw. If the program is normalized, ``log_likelihood`` has the log-probability of each
    sequence, ``token(chain, draw, sequence)``, and ``posterior`` the draws, which ArviZ wants beside it.

    :param posterior: the draws, with the dimensions ``chain`` and ``draw``.

    >>> import pyro, torch
    >>> from pyro_ksd import MarkovSequence, default_views
    >>> from pyro_ksd.fit_tests import posterior_predictive
    >>> from pyro_ksd.models.posterior.posterior_models import PosteriorModels
    >>> def program(x=None, num_sequences=None):
    ...     stop = pyro.sample("stop", pyro.distributions.Beta(2.0, 2.0))
    ...     chain = MarkovSequence.from_transitions(torch.ones(2) / 2, torch.ones(2, 2) / 2, stop)
    ...     with pyro.plate("sequences", num_sequences if x is None else len(x)):
    ...         return pyro.sample("x", chain, obs=x)
    >>> data = Sequences.of(["ab", "b", "aba", "aa"])
    >>> models = PosteriorModels(program, data, {"stop": torch.tensor([0.3, 0.4, 0.5])})
    >>> found = posterior_predictive(models, data, default_views())
    >>> tree = predictive_datatree(found, data, {}, settings={})
    >>> dict(tree["ksd_ppc"].sizes)
    {'chain': 1, 'draw': 3, 'view': 10}
    """
    check_instance("result", result, PosteriorPredictive, "what posterior_predictive gave")
    contribution = result.places[0].contribution
    check_data(sequences, impossible_sites, 0 if contribution is None else len(contribution))
    check_mapping("settings", settings, "what the test was run with, by name")
    realized = result.realized
    replicated = result.replicated.statistic
    groups = common_groups(
        meanings_of(result.views),
        realized.mean(0),
        replicated,
        result.p_value,
        result.p_value_overall,
        sequences,
        kind="posterior predictive",
        settings={**settings, **seconds_attributes(result.seconds)},
    )
    data = KeptData.whole(sequences, impossible_sites)
    add_places(
        groups, result.views, in_rows(result.places, data.possible_rows.__getitem__), data, result.replicated.extreme
    )
    draws = {"realized": realized, "replicated": replicated, "difference": realized - replicated}
    length = len(realized) // result.num_chains
    shape = (result.num_chains, length, len(result.views))
    groups["ksd_ppc"] = xr.Dataset(
        {name: (("chain", "draw", "view"), as_numpy(values).reshape(shape)) for name, values in draws.items()},
        coords={
            "chain": np.arange(result.num_chains),
            "draw": np.arange(length),
            "view": as_strings([view.name for view in result.views]),
        },
        attrs={"kind": "posterior predictive", "sample_dims": ["chain", "draw"]},
    )
    if posterior is not None:
        groups["posterior"] = posterior.assign_attrs(source=POSTERIOR_OF_CHECK)
    add_replicates(groups, result.replicates, sequences, num_chains=result.num_chains, parameters="posterior")
    if result.log_likelihood is not None:
        kept = groups["ksd"]["sequence"].values
        groups["log_likelihood"] = log_likelihood_group(result.log_likelihood, kept, result.num_chains)
    return stamped(groups)
