# SPDX-License-Identifier: Apache-2.0
"""Results of tests as xarray groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from pyro_ksd.common.option_checks import check_flag, check_instance, check_mapping
from pyro_ksd.fit_tests.absolute import GoodnessOfFit
from pyro_ksd.fit_tests.localization import Localization
from pyro_ksd.fit_tests.misfit_extent import Extent
from pyro_ksd.fit_tests.replicates import Replicates
from pyro_ksd.results.arrays import as_numpy
from pyro_ksd.results.extent_groups import add_extent, add_lengths
from pyro_ksd.results.kept_data import KeptData
from pyro_ksd.results.misfit_groups import add_impossible, add_places, in_rows
from pyro_ksd.results.result_tree import ResultTree
from pyro_ksd.results.sequence_groups import sequences_group
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
from pyro_ksd.stein.views import View


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
        ``factor``, by which the model would have to multiply the probability of a sequence, for each occurrence in it,
        to agree with the data; the mean numbers in a sequence, ``observed`` in the data and ``expected`` under the
        model, and their ``ratio``; each with its 95 % interval, such as ``factor_low`` to ``factor_high``
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
        add_replicates(groups, replicates, sequences, num_chains=1, parameters="given")
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
    add_extent(groups, result.views, extent, [str(symbol) for symbol in data.sequences.symbols])
    num_drawn = 0 if extent.drawn is None else len(extent.drawn)
    add_lengths(groups, result.views, data.lengths, num_drawn)
    return groups


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
    add_impossible(groups, KeptData.whole(sequences, impossible_sites))
    return stamped(groups)


def _check_places(views: Sequence[View], localizations: Sequence[Localization]) -> None:
    check_instance("localizations", localizations, Sequence, "a list of Localization objects, made by localize(result)")
    for one in localizations:
        check_instance("localizations", one, Localization, "a list of Localization objects, made by localize(result)")
    if len(localizations) != len(views):
        raise ValueError(f"localizations: expected one for each of the {len(views)} views, found {len(localizations)}")
