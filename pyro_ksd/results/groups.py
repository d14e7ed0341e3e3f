# SPDX-License-Identifier: Apache-2.0
"""Results of tests as xarray groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace

import numpy as np
import numpy.typing as npt
import xarray as xr
from torch import Tensor
from torch.nn.functional import pad

from pyro_ksd.common.option_checks import check_flag, check_instance, check_mapping, check_number, found, is_real
from pyro_ksd.common.tensor_checks import check_tensor
from pyro_ksd.fit_tests.absolute import GoodnessOfFit
from pyro_ksd.fit_tests.factor_tolerance import FACTOR
from pyro_ksd.fit_tests.fault_sizes import EffectSizes
from pyro_ksd.fit_tests.largest_shares import stacked
from pyro_ksd.fit_tests.localization import Localization, TopFeatures
from pyro_ksd.fit_tests.misfit_extent import Extent, Tolerated
from pyro_ksd.fit_tests.predictive import PosteriorPredictive
from pyro_ksd.fit_tests.replicates import Replicates
from pyro_ksd.kernels.embedding import EmbeddingKernel
from pyro_ksd.kernels.length import LengthKernel
from pyro_ksd.results.arrays import as_numpy, as_strings
from pyro_ksd.results.checksums import with_checksums
from pyro_ksd.results.containers import POSTERIOR_OF_CHECK, provenance, schema_stamp
from pyro_ksd.results.kept_data import KeptData
from pyro_ksd.results.labels import feature_labels, operation, spelled
from pyro_ksd.results.result_tree import ResultTree
from pyro_ksd.results.sequence_groups import (
    log_likelihood_group,
    observed_beside,
    observed_group,
    predictive_group,
    sequences_group,
)
from pyro_ksd.sequences.argument_checks import check_sequences
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.views import View

IMPOSSIBLE = "impossible"
"""The kind of the overall p-value, 0, of a model that gives probability 0 to some sequences."""

_SHOWN = 20  # sequences of the model, to show beside the data

Settings = Mapping[str, str | int | float]
"""What a test was run with, kept in the attributes of the group ``ksd``."""


def to_datatree(
    result: GoodnessOfFit,
    localizations: Sequence[Localization],
    sequences: Sequences,
    impossible_sites: Mapping[int, str],
    extent: Extent,
    *,
    settings: Settings,
    gram: bool,
    replicates: Replicates | None = None,
) -> ResultTree:
    """A test's result as flat groups that ArviZ can plot and netCDF can hold.

    ``ksd``
        ``statistic(view)``, ``p_value(view)``, ``p_value_overall``, which is 0 if the model gives probability 0 to
        some sequences, and then ``p_value_possible``, that of all views together for the others; ``meaning(view)``,
        what a view looks at, ``feature_kind(view)``, and ``weight(view)``, how much it counts; ``foreign_share(view)``
        and ``foreign_share_overall``, lower confidence bounds of the share of sequences that do not come from the
        model; with a tolerance, ``tolerance_p_value(view)`` and ``tolerance_p_value_overall`` of the hypothesis that
        this share is at most the tolerance, and ``discrepancy(view)``, the relative discrepancy, with its upper
        confidence bound ``discrepancy_upper(view)``; ``contribution(view, sequence)``, the share of each sequence in
        the statistic; ``shown_sequence(view, shown)``, the sequences with the largest shares in descending order, 1,000
        of them or all, and ``attribution(view, shown, position)``, the shares of their positions, NaN after the end; if
        asked for, the Stein kernel matrices ``gram(view, sequence, sequence_bis)``
    ``ksd_null``
        ``ksd(chain, draw, view)``, the null draws of the statistics; ``extreme(chain, draw, view)``, those of the
        largest ``|z|`` of the features
    ``ksd_ngram``
        for the features of all views that report them one by one: ``view_name``, ``label``, ``mean``, ``share``, ``z``,
        ``p_value`` ``(ngram)``, and ``symbol(ngram, place)``, the codes of the symbols of an n-gram, padded with -1
        (a start has the number of symbols as a further code, where the sequence is over). For features that stand out:
        ``factor``, by which every occurrence must be weighted to agree with the data; the mean numbers in a sequence
        ``observed`` in the data and ``expected`` in draws of the model, and their ``ratio``; each with its 95 %
        interval, such as ``factor_low`` to ``factor_high``
    ``ksd_factor``
        with a tolerance, for the most frequent n-grams of each view that counts them: ``view_name``, ``label``,
        ``factor`` with its interval ``factor_low`` to ``factor_high``, NaN where it cannot be estimated, ``within`` and
        ``outside``, whether it is demonstrably within or outside of the factor that is tolerated, ``(ngram)``, and
        ``symbol(ngram, place)``; this factor is the attribute ``tolerance``
    ``ksd_length``
        ``observed(length)`` and ``expected(length)``, the shares of lengths in the data and the probabilities under the
        model, if the check looked at the length
    ``ksd_draws``
        some sequences of the model, if it can be sampled: ``token(sequence, position)`` and ``length(sequence)``
    ``ksd_edit``
        the edits with the largest share: ``view_name``, ``sequence_index``, ``position_index``, ``operation``,
        ``share`` ``(edit)``
    ``ksd_impossible``
        ``site(sequence)``; only if the model gives probability 0 to some sequences
    ``ksd_data``
        all sequences: ``token(sequence, position)``, -1 after the end, and ``length(sequence)``
    ``posterior_predictive``
        if the model can be sampled, data sets that it made in numbers: ``length``, the number of ``distinct_symbols``
        ``(chain, draw, sequence)`` and ``symbol_count(chain, draw, sequence, symbol)``, how often each of the 30 most
        frequent symbols occurs; if asked for, the sequences, ``token(chain, draw, sequence, position)``
    ``observed_data``
        the same numbers of the data without impossible sequences, for ArviZ to draw beside them; else their lengths

    :param localizations: one for each view.
    :param sequences: all of the data, also what the model calls impossible.
    :param impossible_sites: for each row that the model calls impossible, the site that makes it so, or ``""``.
    :param extent: how large the misfit is.
    :param settings: what the test was run with, kept in the attributes of ``ksd``.
    :param gram: whether to keep the Stein kernel matrices.
    :param replicates: data sets that the model made, each with the sequences that it does not call impossible.

    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.fit_tests import extent, goodness_of_fit, localize
    >>> from pyro_ksd.stein import default_views
    >>> data = Sequences.of(["aabb", "bbccc", "caa", "abbc"])
    >>> found = goodness_of_fit(random_walk(3), data, default_views(), num_bootstrap=20)
    >>> places = localize(found)
    >>> size = extent(found, places, data, None)
    >>> list(to_datatree(found, places, data, {}, size, settings={"seed": 0}, gram=False).children)
    ['ksd', 'ksd_null', 'ksd_data', 'observed_data', 'ksd_ngram', 'ksd_edit']
    """
    check_instance("result", result, GoodnessOfFit, "what goodness_of_fit gave")
    _check_places(result.views, localizations)
    check_data(sequences, impossible_sites, result.num_sequences)
    check_instance("extent", extent, Extent, "what extent(...) gave")
    check_mapping("settings", settings, "what the test was run with, by name")
    check_flag("gram", gram)
    data = KeptData.whole(sequences, impossible_sites)
    groups = _check_groups(result, in_rows(localizations, data.possible_rows.__getitem__), data, extent, settings)
    if replicates is not None:
        _add_replicates(groups, replicates, sequences, num_chains=1, parameters="given")
    if gram:
        kept = groups["ksd"]["sequence"].values
        visits = result.visits_of_all("gram")
        grams = np.stack([as_numpy(visits.whole(view)[0].dense()) for view in result.views])
        groups["ksd"] = groups["ksd"].assign_coords(sequence_bis=kept)
        groups["ksd"]["gram"] = (("view", "sequence", "sequence_bis"), grams)
    return stamped(groups)


def partitioned_datatree(
    result: GoodnessOfFit,
    localizations: Sequence[Localization],
    data: KeptData,
    extent: Extent,
    *,
    settings: Settings,
) -> ResultTree:
    """The groups of :func:`to_datatree` for partitioned data, of which only some sequences are kept.

    These are the sequences with the largest shares and those of the edits with the largest shares, with their rows in
    the data. A contribution is NaN where a sequence is not among those of the view with the largest shares.

    :param localizations: one for each view; sequences are rows of the data.
    """
    check_instance("result", result, GoodnessOfFit, "what a test of fit gave")
    _check_places(result.views, localizations)
    check_instance("data", data, KeptData, "what a result keeps of the data")
    check_instance("extent", extent, Extent, "what extent(...) gave")
    check_mapping("settings", settings, "what the test was run with, by name")
    return stamped(_check_groups(result, localizations, data, extent, settings))


def _check_groups(
    result: GoodnessOfFit,
    localizations: Sequence[Localization],
    data: KeptData,
    extent: Extent,
    settings: Settings,
) -> dict[str, xr.Dataset]:
    """The groups of a check; sequences in localizations are rows of the data."""
    groups = common_groups(
        meanings_of(result.views),
        result.statistic,
        result.null.statistic,
        result.p_value,
        result.p_value_overall,
        data.sequences,
        kind=result.kind,
        settings={**settings, **seconds_attributes(result.seconds)},
    )
    if data.is_partial:  # and no numbers for ArviZ, as these sequences are not typical
        groups["ksd_data"] = sequences_group(data.sequences).assign_coords(sequence=as_numpy(data.rows))
        groups["ksd_data"].attrs["num_sequences"] = data.num_sequences
        del groups["observed_data"]
    add_places(groups, result.views, localizations, data, result.null.extreme)
    _add_extent(groups, result.views, extent, [str(symbol) for symbol in data.sequences.symbols])
    num_drawn = 0 if extent.drawn is None else len(extent.drawn)
    _add_lengths(groups, result.views, data.lengths, num_drawn)
    return groups


def in_rows(localizations: Sequence[Localization], rows: Callable[[Tensor], Tensor]) -> list[Localization]:
    """Localizations whose sequences are rows of all data.

    :param rows: gives the rows of all data from the numbers of sequences among the possible ones.
    """
    return [
        replace(
            one,
            shown=replace(one.shown, sequence=rows(one.shown.sequence)),
            edits=replace(one.edits, sequence=rows(one.edits.sequence)),
        )
        for one in localizations
    ]


def p_value_datatree(
    result: GoodnessOfFit,
    sequences: Sequences,
    impossible_sites: Mapping[int, str],
    *,
    settings: Settings,
) -> ResultTree:
    """The p-values of a test alone: the groups of :func:`~pyro_ksd.results.common_groups`, with the weights of views.

    The group ``ksd_impossible`` is there as in :func:`~pyro_ksd.results.to_datatree`.

    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.fit_tests import goodness_of_fit
    >>> from pyro_ksd.stein import default_views
    >>> data = Sequences.of(["aabb", "bbccc", "caa", "abbc"])
    >>> found = goodness_of_fit(random_walk(3), data, default_views(), num_bootstrap=20)
    >>> list(p_value_datatree(found, data, {}, settings={"level": 0.05}).children)
    ['ksd', 'ksd_null', 'ksd_data', 'observed_data']
    """
    check_instance("result", result, GoodnessOfFit, "what goodness_of_fit gave")
    check_data(sequences, impossible_sites, result.num_sequences)
    check_mapping("settings", settings, "what the test was run with, by name")
    groups = common_groups(
        meanings_of(result.views),
        result.statistic,
        result.null.statistic,
        result.p_value,
        result.p_value_overall,
        sequences,
        kind=result.kind,
        settings={**settings, **seconds_attributes(result.seconds), "localized": 0},
    )
    groups["ksd"]["weight"] = ("view", np.array([view.weight for view in result.views]))
    _add_impossible(groups, KeptData.whole(sequences, impossible_sites))
    return stamped(groups)


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
    _add_replicates(groups, result.replicates, sequences, num_chains=result.num_chains, parameters="posterior")
    if result.log_likelihood is not None:
        kept = groups["ksd"]["sequence"].values
        groups["log_likelihood"] = log_likelihood_group(result.log_likelihood, kept, result.num_chains)
    return stamped(groups)


def common_groups(
    meanings: Mapping[str, str],
    statistic: Tensor,
    null: Tensor,
    p_value: Tensor,
    p_value_overall: float,
    sequences: Sequences,
    *,
    kind: str,
    settings: Settings,
) -> dict[str, xr.Dataset]:
    """The groups that every test has: ``ksd``, ``ksd_null``, ``ksd_data`` and ``observed_data``.

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
    check_mapping("meanings", meanings, "what each view looks at, by its name")
    if not meanings:
        raise ValueError("meanings: expected at least one view, found none")
    check_tensor("statistic", statistic, len(meanings))
    check_tensor("null", null, "B", len(meanings))
    check_tensor("p_value", p_value, len(meanings))
    check_sequences("sequences", sequences)
    check_mapping("settings", settings, "what the test was run with, by name")
    check_instance("kind", kind, str, "words for the kind of the p-values")
    if not is_real(p_value_overall):
        raise ValueError(f"p_value_overall: expected a number, found {found(p_value_overall)}")
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
    data = {"ksd_data": sequences_group(sequences), "observed_data": observed_group(sequences)}
    return {"ksd": ksd, "ksd_null": draws, **data}


def stamped(groups: Mapping[str, xr.Dataset]) -> ResultTree:
    """The groups as one result, with attributes that say by which schema, when and by what they were made."""
    made = {name: group.assign_attrs(provenance()) for name, group in groups.items()}
    tree = xr.DataTree.from_dict({"/": xr.Dataset(attrs=schema_stamp()), **made})
    return ResultTree.of(with_checksums(tree))


def _check_places(views: Sequence[View], localizations: Sequence[Localization]) -> None:
    check_instance("localizations", localizations, Sequence, "a list of Localization objects, made by localize(result)")
    for one in localizations:
        check_instance("localizations", one, Localization, "a list of Localization objects, made by localize(result)")
    if len(localizations) != len(views):
        raise ValueError(f"localizations: expected one for each of the {len(views)} views, found {len(localizations)}")


def check_data(sequences: Sequences, impossible_sites: Mapping[int, str], possible: int) -> None:
    """Checks that the data are the sequences of a test and those that its model calls impossible."""
    check_sequences("sequences", sequences)
    check_instance("impossible_sites", impossible_sites, Mapping, "sites by the rows of impossible sequences")
    for row in impossible_sites:
        check_number("impossible_sites", row, least=0, most=len(sequences) - 1)
    if len(sequences) != possible + len(impossible_sites):
        raise ValueError(
            f"sequences: expected all data, {possible} of the test and {len(impossible_sites)} impossible ones, found "
            f"{len(sequences)}"
        )


def meanings_of(views: Sequence[View]) -> dict[str, str]:
    return {view.name: view.kernel.meaning for view in views}


def seconds_attributes(seconds: Mapping[str, float]) -> dict[str, float]:
    return {f"seconds_{stage}": spent for stage, spent in seconds.items()}


def add_places(
    groups: dict[str, xr.Dataset],
    views: Sequence[View],
    localizations: Sequence[Localization],
    data: KeptData,
    extreme: Tensor,
) -> None:
    """Adds where the misfit sits, and the sequences that are impossible, to the groups that every test has."""
    rows = data.possible_rows
    symbols = [str(symbol) for symbol in data.sequences.symbols]
    shown = [one.shown for one in localizations]
    attribution = stacked([one.attribution for one in shown], np.nan)
    if data.is_partial:
        groups["ksd"].attrs["num_sequences"] = data.num_sequences - data.num_impossible
        # The longest sequences may not be kept.
        attribution = pad(attribution, (0, data.sequences.width + 1 - attribution.shape[1]), value=np.nan)
    groups["ksd"] = (
        groups["ksd"]
        .assign_coords(
            sequence=as_numpy(rows), shown=np.arange(len(shown[0].sequence)), position=np.arange(attribution.shape[1])
        )
        .assign(
            feature_kind=("view", as_strings([view.kernel.feature_kind for view in views])),
            weight=("view", np.array([view.weight for view in views])),
            contribution=(("view", "sequence"), np.stack([_contribution(one, rows) for one in localizations])),
            shown_sequence=(("view", "shown"), np.stack([as_numpy(one.sequence) for one in shown])),
            attribution=(
                ("view", "shown", "position"),
                as_numpy(attribution).reshape(len(shown), -1, attribution.shape[1]),
            ),
        )
    )
    groups["ksd_null"]["extreme"] = (("chain", "draw", "view"), as_numpy(extreme)[None])
    groups["ksd_ngram"] = _ngrams(views, localizations, symbols)
    groups["ksd_edit"] = _edits(views, localizations, symbols)
    _add_impossible(groups, data)


def _add_impossible(groups: dict[str, xr.Dataset], data: KeptData) -> None:
    """Adds the sequences that are impossible, and what they mean for the overall p-value."""
    groups["ksd"].attrs["kind_overall"] = groups["ksd"].attrs["kind"]
    if data.num_impossible:
        groups["ksd"]["p_value_possible"] = groups["ksd"]["p_value_overall"]
        groups["ksd"]["p_value_overall"] = ((), 0.0)
        groups["ksd"].attrs["kind_overall"] = IMPOSSIBLE
        sites = data.impossible_sites
        groups["ksd_impossible"] = xr.Dataset(
            {"site": ("sequence", as_strings(list(sites.values())))},
            coords={"sequence": np.array(list(sites), dtype=np.int64)},
            attrs={"num_sequences": data.num_impossible} if data.is_partial else {},
        )


def _add_replicates(
    groups: dict[str, xr.Dataset], replicates: Replicates, sequences: Sequences, *, num_chains: int, parameters: str
) -> None:
    """Adds replicated data in numbers, and the same numbers of the data."""
    kept = groups["ksd"]["sequence"].values
    groups["posterior_predictive"] = predictive_group(
        replicates, sequences, kept, num_chains=num_chains, parameters=parameters
    )
    groups["observed_data"] = observed_beside(replicates, sequences, kept)


def _contribution(place: Localization, rows: Tensor) -> npt.NDArray[np.generic]:
    """The shares of the sequences in some rows of the data, NaN for those that are not known."""
    if place.contribution is not None:
        return as_numpy(place.contribution)
    shares = np.full(len(rows), np.nan)
    shares[np.searchsorted(as_numpy(rows), as_numpy(place.shown.sequence))] = as_numpy(place.shown.share)
    return shares


def _add_extent(groups: dict[str, xr.Dataset], views: Sequence[View], extent: Extent, symbols: Sequence[str]) -> None:
    """Adds how large the misfit is."""
    foreign = extent.foreign
    groups["ksd"] = groups["ksd"].assign(
        foreign_share=("view", as_numpy(foreign.share)), foreign_share_overall=((), foreign.share_overall)
    )
    tolerated = extent.tolerated
    if tolerated is not None:
        groups["ksd"] = (
            groups["ksd"]
            .assign_attrs(tolerance=tolerated.tolerance)
            .assign(
                tolerance_p_value=("view", as_numpy(tolerated.p_value)),
                tolerance_p_value_overall=((), tolerated.p_value_overall),
                discrepancy=("view", as_numpy(tolerated.closeness.estimate)),
                discrepancy_upper=("view", as_numpy(tolerated.closeness.upper)),
            )
        )
        if tolerated.factors:
            groups["ksd_factor"] = _factors(views, tolerated, symbols)
    reported = [size for view, size in zip(views, extent.sizes, strict=True) if view.kernel.feature_kind]
    names = [field.name for field in fields(EffectSizes)]
    sizes = {name: ("ngram", _joined([getattr(size, name) for size in reported])) for name in names}
    groups["ksd_ngram"] = groups["ksd_ngram"].assign(sizes)
    if extent.drawn is not None:
        groups["ksd_draws"] = sequences_group(extent.drawn[:_SHOWN].narrowed())


def _factors(views: Sequence[View], tolerated: Tolerated, symbols: Sequence[str]) -> xr.Dataset:
    """Whether n-grams are off by more than a factor."""
    parts = tolerated.factors
    codes = _padded([part.symbols for part in parts])
    intervals = {"factor": "log_factor", "factor_low": "low", "factor_high": "high"}
    variables: dict[str, npt.NDArray[np.generic]] = {
        "view_name": as_strings([views[part.view].name for part in parts for _ in part.symbols]),
        "label": as_strings([spelled(ngram, symbols) for ngram in codes.tolist()]),
        **{name: _joined([getattr(part.tilts, field).exp() for part in parts]) for name, field in intervals.items()},
        "within": _joined([part.is_within for part in parts]),
        "outside": _joined([part.is_outside for part in parts]),
    }
    return xr.Dataset(
        {name: ("ngram", values) for name, values in variables.items()} | {"symbol": (("ngram", "place"), codes)},
        coords={"ngram": np.arange(len(codes)), "place": np.arange(codes.shape[1])},
        attrs={"tolerance": FACTOR},
    )


def _add_lengths(
    groups: dict[str, xr.Dataset],
    views: Sequence[View],
    lengths: Tensor,
    num_drawn: int,
) -> None:
    """Adds the lengths of the data and those of the model, if a view compared them.

    :param lengths: how many possible sequences have the length 0, 1, ...
    :param num_drawn: the number of draws that those of the model were estimated from; 0 if from the data.
    """
    known = [view.kernel.distribution for view in views if isinstance(view.kernel, LengthKernel)]
    if not known or known[0] is None:
        return
    own = known[0]
    counts = as_numpy(lengths)
    columns = {"expected": own}
    if own.bounds is not None:
        columns |= dict(zip(("expected_low", "expected_high"), own.bounds, strict=True))
    last = max(len(counts), *(one.shortest + len(one.probability) for one in columns.values()))
    expected = {
        name: np.pad(as_numpy(one.probability), (one.shortest, last - one.shortest - len(one.probability)))
        for name, one in columns.items()
    }
    observed = np.pad(counts / counts.sum(), (0, last - len(counts)))
    seen = np.flatnonzero(observed)
    groups["ksd_length"] = xr.Dataset(
        {name: ("length", values) for name, values in {"observed": observed, **expected}.items()},
        coords={"length": np.arange(last)},
        attrs={
            "num_drawn": num_drawn,
            "unseen": float(1 - expected["expected"][seen[0] : seen[-1] + 1].sum()),
            "complete": int(own.is_complete),
        },
    )


def _ngrams(views: Sequence[View], localizations: Sequence[Localization], symbols: Sequence[str]) -> xr.Dataset:
    pairs = zip(views, localizations, strict=True)
    reported = [(view, one.features) for view, one in pairs if one.features is not None]
    labels = [label for view, features in reported for label in _labels(view, features, symbols)]
    variables: dict[str, npt.NDArray[np.generic]] = {
        "view_name": as_strings([view.name for view, features in reported for _ in features.code]),
        "label": as_strings(labels),
        "mean": _joined([features.mean for _, features in reported]),
        "share": _joined([features.share for _, features in reported]),
        "z": _joined([features.z for _, features in reported]),
        "p_value": _joined([features.p_value for _, features in reported]),
    }
    codes = _padded([features.symbols for _, features in reported])
    return xr.Dataset(
        {name: ("ngram", values) for name, values in variables.items()} | {"symbol": (("ngram", "place"), codes)},
        coords={"ngram": np.arange(len(labels)), "place": np.arange(codes.shape[1])},
    )


def _padded(symbols: Sequence[Tensor]) -> npt.NDArray[np.int64]:
    """Codes of n-grams of all views below each other, padded with -1."""
    width = max([1, *(part.shape[1] for part in symbols)])
    padded = [np.pad(as_numpy(part), ((0, 0), (0, width - part.shape[1])), constant_values=-1) for part in symbols]
    return np.concatenate([np.zeros((0, width), dtype=np.int64), *padded])


def _labels(view: View, features: TopFeatures, symbols: Sequence[str]) -> list[str]:
    kernel = view.kernel
    if isinstance(kernel, EmbeddingKernel):
        return kernel.labels_in(view.name, features.code.tolist())
    ngrams = features.symbols.tolist()
    names = [kernel.feature_label(code, len(symbols)) for code in features.code.tolist()]
    return feature_labels(kernel.feature_kind, names, ngrams, symbols)


def _edits(
    views: Sequence[View],
    localizations: Sequence[Localization],
    symbols: Sequence[str],
) -> xr.Dataset:
    tops = [one.edits for one in localizations]
    operations = [
        operation(removed, inserted, symbols)
        for edits in tops
        for removed, inserted in zip(edits.removed.tolist(), edits.inserted.tolist(), strict=True)
    ]
    owners = [view.name for view, edits in zip(views, tops, strict=True) for _ in edits.share]
    variables: dict[str, npt.NDArray[np.generic]] = {
        "view_name": as_strings(owners),
        "sequence_index": _joined([edits.sequence for edits in tops]),
        "position_index": _joined([edits.position for edits in tops]),
        "operation": as_strings(operations),
        "share": _joined([edits.share for edits in tops]),
    }
    return xr.Dataset(
        {name: ("edit", values) for name, values in variables.items()},
        coords={"edit": np.arange(len(operations))},
    )


def _joined(parts: Sequence[Tensor]) -> npt.NDArray[np.generic]:
    return np.concatenate([as_numpy(part) for part in parts]) if parts else np.zeros(0)
