# SPDX-License-Identifier: Apache-2.0
"""Results of a test as xarray groups."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import xarray as xr
from torch import Tensor

from pyro_ksd.containers import provenance
from pyro_ksd.localization import Localization
from pyro_ksd.predictive import PosteriorPredictive
from pyro_ksd.sequences import Sequences
from pyro_ksd.testing import GoodnessOfFit


@dataclass(frozen=True, eq=False)
class Impossible:
    """The sequences that the model gives probability 0.

    :ivar rows: long ``[M]``, ascending.
    :ivar sites: what makes each of them impossible, ``""`` where the model cannot tell.
    """

    rows: Tensor
    sites: Sequence[str]


def to_datatree(
    result: GoodnessOfFit,
    localizations: Sequence[Localization],
    sequences: Sequences,
    impossible: Impossible,
    *,
    settings: Mapping[str, str | int | float],
    gram: bool,
) -> xr.DataTree:
    """A test's result as flat groups that ArviZ can plot and netCDF can hold.

    ``ksd``
        ``statistic(view)``, ``p_value(view)``, ``p_value_overall``; ``meaning(view)``, what a view looks at, and
        ``feature_kind(view)``; ``contribution(view, sequence)``, the share of each sequence in the statistic, and
        ``attribution(view, sequence, position)``, the share of each position, NaN behind the end; if asked for, the
        Stein kernel matrices ``gram(view, sequence, sequence_bis)``
    ``ksd_null``
        ``ksd(chain, draw, view)``, the null draws of the statistics; ``extreme(chain, draw, view)``, those of the
        largest ``|z|`` of the features
    ``ksd_ngram``
        for the named features of all views: ``view_name``, ``label``, ``mean``, ``share``, ``z``, ``p_value``
        ``(ngram)``
    ``ksd_edit``
        the edits with the largest share: ``view_name``, ``sequence_index``, ``position_index``, ``operation``,
        ``share`` ``(edit)``
    ``ksd_impossible``
        ``site(sequence)``; only if the model gives probability 0 to some sequences
    ``observed_data``
        all sequences: ``token(sequence, position)``, -1 behind the end, and ``length(sequence)``

    :param localizations: one for each view.
    :param sequences: all of the data, also what the model calls impossible.
    :param settings: what the test was run with, kept in the attributes of ``ksd``.

    >>> import torch
    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.localization import localize
    >>> from pyro_ksd.testing import goodness_of_fit
    >>> from pyro_ksd.views import default_views
    >>> data = Sequences.of(["aabb", "bbccc", "caa", "abbc"])
    >>> found = goodness_of_fit(random_walk(3), data, default_views(), num_bootstrap=20)
    >>> none = Impossible(torch.zeros(0, dtype=torch.long), [])
    >>> list(to_datatree(found, localize(found, "abc"), data, none, settings={"seed": 0}, gram=False).children)
    ['ksd', 'ksd_null', 'observed_data', 'ksd_ngram', 'ksd_edit']
    """
    kept = np.setdiff1d(np.arange(len(sequences)), as_numpy(impossible.rows))
    seconds = {f"seconds_{stage}": seconds for stage, seconds in result.seconds.items()}
    groups = common_groups(
        {view.name: view.kernel.meaning for view in result.views},
        result.statistic,
        result.null.statistic,
        result.p_value,
        result.p_value_overall,
        sequences,
        kind=result.kind,
        settings={**settings, **seconds},
    )
    groups["ksd"] = _with_places(groups["ksd"], result, localizations, kept, gram)
    groups["ksd_null"]["extreme"] = (("chain", "draw", "view"), as_numpy(result.null.extreme)[None])
    groups["ksd_ngram"] = _ngrams(result, localizations)
    groups["ksd_edit"] = _edits(result, localizations, kept)
    if len(impossible.rows):
        groups["ksd_impossible"] = xr.Dataset(
            {"site": ("sequence", as_strings(impossible.sites))}, coords={"sequence": as_numpy(impossible.rows)}
        )
    return stamped(groups)


def predictive_datatree(
    result: PosteriorPredictive,
    sequences: Sequences,
    impossible: Impossible,
    *,
    settings: Mapping[str, str | int | float],
) -> xr.DataTree:
    """A posterior predictive check as the groups of :func:`to_datatree`, with the group ``ksd_ppc``.

    ``ksd`` holds means over the posterior draws (of contributions, attributions and features: over at most 25 of them,
    evenly spaced), ``ksd_null`` the statistics of the replicated data, and ``ksd_ppc`` the statistics of each draw:
    ``realized``, ``replicated`` and their ``difference``, ``(chain, draw, view)``.

    >>> import pyro, torch
    >>> from pyro_ksd import MarkovSequence, default_views
    >>> from pyro_ksd.models.draws import ModelDraws
    >>> from pyro_ksd.predictive import posterior_predictive
    >>> def program(x=None, num_sequences=None):
    ...     stop = pyro.sample("stop", pyro.distributions.Beta(2.0, 2.0))
    ...     chain = MarkovSequence.from_transitions(torch.ones(2) / 2, torch.ones(2, 2) / 2, stop)
    ...     with pyro.plate("sequences", num_sequences if x is None else len(x)):
    ...         return pyro.sample("x", chain, obs=x)
    >>> data = Sequences.of(["ab", "b", "aba", "aa"])
    >>> models = ModelDraws(program, data, {"stop": torch.tensor([0.3, 0.4, 0.5])})
    >>> found = posterior_predictive(models, data, default_views(), "ab")
    >>> tree = predictive_datatree(found, data, Impossible(torch.zeros(0, dtype=torch.long), []), settings={})
    >>> dict(tree["ksd_ppc"].sizes)
    {'chain': 1, 'draw': 3, 'view': 5}
    """
    means = GoodnessOfFit(
        views=result.views,
        statistic=result.realized.mean(0),
        null=result.replicated,
        p_value=result.p_value,
        p_value_overall=result.p_value_overall,
        kind="posterior predictive",
        jumps={},
        matrices=(),
        seconds=result.seconds,
    )
    tree = to_datatree(means, result.places, sequences, impossible, settings=settings, gram=False)
    realized, replicated = result.realized, result.replicated.statistic
    draws = {"realized": realized, "replicated": replicated, "difference": realized - replicated}
    length = len(realized) // result.num_chains
    shape = (result.num_chains, length, len(result.views))
    ppc = xr.Dataset(
        {name: (("chain", "draw", "view"), as_numpy(values).reshape(shape)) for name, values in draws.items()},
        coords={
            "chain": np.arange(result.num_chains),
            "draw": np.arange(length),
            "view": as_strings([view.name for view in result.views]),
        },
        attrs={"kind": "posterior predictive", "sample_dims": ["chain", "draw"], **provenance()},
    )
    return tree.assign({"ksd_ppc": xr.DataTree(ppc)})


def common_groups(
    meanings: Mapping[str, str],
    statistic: Tensor,
    null: Tensor,
    p_value: Tensor,
    p_value_overall: float,
    sequences: Sequences,
    *,
    kind: str,
    settings: Mapping[str, str | int | float],
) -> dict[str, xr.Dataset]:
    """The groups that every test has: ``ksd``, ``ksd_null`` and ``observed_data``.

    :param meanings: what each of the ``V`` views looks at, by its name.
    :param statistic: ``[V]``.
    :param null: ``[B, V]``, null draws of the statistics.
    :param p_value: ``[V]``.
    :param kind: what kind of p-values these are.
    :param settings: what the test was run with, kept in the attributes of ``ksd``.

    >>> import torch
    >>> statistic, p = torch.tensor([0.3]), torch.tensor([0.02])
    >>> null, data = torch.zeros(99, 1), Sequences.of(["ab", "b"])
    >>> meanings = {"pairs": "pairs of neighbors"}
    >>> groups = common_groups(meanings, statistic, null, p, 0.02, data, kind="wild", settings={})
    >>> groups["ksd_null"]["ksd"].sizes["draw"]
    99
    """
    view = {"view": as_strings(list(meanings))}
    ksd = xr.Dataset(
        {
            "statistic": ("view", as_numpy(statistic)),
            "p_value": ("view", as_numpy(p_value)),
            "p_value_overall": ((), p_value_overall),
            "meaning": ("view", as_strings(list(meanings.values()))),
        },
        coords=view,
        attrs={"kind": kind, "num_bootstrap": len(null), **settings},
    )
    draws = xr.Dataset(
        {"ksd": (("chain", "draw", "view"), as_numpy(null)[None])},
        coords={"chain": [0], "draw": np.arange(len(null)), **view},
        attrs={"kind": kind, "sample_dims": ["chain", "draw"]},
    )
    return {"ksd": ksd, "ksd_null": draws, "observed_data": observed_data(sequences)}


def stamped(groups: Mapping[str, xr.Dataset]) -> xr.DataTree:
    """The groups as a DataTree, with attributes that say when and by what they were made."""
    return xr.DataTree.from_dict({name: group.assign_attrs(provenance()) for name, group in groups.items()})


def _with_places(
    ksd: xr.Dataset,
    result: GoodnessOfFit,
    localizations: Sequence[Localization],
    kept: npt.NDArray[np.int64],
    gram: bool,
) -> xr.Dataset:
    attribution = np.stack([as_numpy(found.attribution) for found in localizations])
    contribution = np.stack([as_numpy(found.contribution) for found in localizations])
    ksd = ksd.assign_coords(sequence=kept, position=np.arange(attribution.shape[-1])).assign(
        feature_kind=("view", as_strings([view.kernel.feature_kind for view in result.views])),
        contribution=(("view", "sequence"), contribution),
        attribution=(("view", "sequence", "position"), attribution),
    )
    if gram:
        grams = np.stack([as_numpy(matrix.dense()) for matrix in result.matrices])
        ksd = ksd.assign_coords(sequence_bis=kept).assign(gram=(("view", "sequence", "sequence_bis"), grams))
    return ksd


def _ngrams(result: GoodnessOfFit, localizations: Sequence[Localization]) -> xr.Dataset:
    pairs = zip(result.views, localizations, strict=True)
    named = [(view.name, found.features) for view, found in pairs if found.features is not None]
    variables: dict[str, npt.NDArray[np.generic]] = {
        "view_name": as_strings([name for name, features in named for _ in features.name]),
        "label": as_strings([label for _, features in named for label in features.name]),
        "mean": _joined([features.mean for _, features in named]),
        "share": _joined([features.share for _, features in named]),
        "z": _joined([features.z for _, features in named]),
        "p_value": _joined([features.p_value for _, features in named]),
    }
    return xr.Dataset(
        {name: ("ngram", values) for name, values in variables.items()},
        coords={"ngram": np.arange(len(variables["label"]))},
    )


def _edits(result: GoodnessOfFit, localizations: Sequence[Localization], kept: npt.NDArray[np.int64]) -> xr.Dataset:
    pairs = list(zip(result.views, localizations, strict=True))
    operations = [
        _operation(removed, inserted)
        for _, found in pairs
        for removed, inserted in zip(found.edits.removed, found.edits.inserted, strict=True)
    ]
    variables: dict[str, npt.NDArray[np.generic]] = {
        "view_name": as_strings([view.name for view, found in pairs for _ in found.edits.removed]),
        "sequence_index": kept[_joined([found.edits.sequence for _, found in pairs])],
        "position_index": _joined([found.edits.position for _, found in pairs]),
        "operation": as_strings(operations),
        "share": _joined([found.edits.share for _, found in pairs]),
    }
    return xr.Dataset(
        {name: ("edit", values) for name, values in variables.items()},
        coords={"edit": np.arange(len(operations))},
    )


def _operation(removed: tuple[str, ...], inserted: tuple[str, ...]) -> str:
    gone, come = (" ".join(map(repr, symbols)) for symbols in (removed, inserted))
    if not removed:
        return f"insert {come}"
    return f"replace {gone} by {come}" if inserted else f"delete {gone}"


def observed_data(sequences: Sequences) -> xr.Dataset:
    """The sequences as a group, so that a saved file is self-contained."""
    # The alphabet belongs to the variable, so that it stays with it when the group is merged with another one.
    alphabet = {"alphabet": json.dumps([str(symbol) for symbol in sequences.symbols])}
    return xr.Dataset(
        {
            "token": (("sequence", "position"), as_numpy(sequences.padded(-1)), alphabet),
            "length": ("sequence", as_numpy(sequences.lengths)),
        },
        coords={"sequence": np.arange(len(sequences)), "position": np.arange(sequences.width)},
    )


def as_strings(values: Sequence[str]) -> npt.NDArray[np.object_]:
    """Strings in the form that netCDF gives back unchanged."""
    return np.array(values, dtype=object)


def _joined(parts: Sequence[Tensor]) -> npt.NDArray[np.generic]:
    return np.concatenate([as_numpy(part) for part in parts]) if parts else np.zeros(0)


def as_numpy(tensor: Tensor) -> npt.NDArray[np.generic]:
    """A tensor of any device as an array."""
    array: npt.NDArray[np.generic] = tensor.detach().cpu().numpy()
    return array
