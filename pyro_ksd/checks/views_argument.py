# SPDX-License-Identifier: Apache-2.0
"""The views to look at, from what the user passes: names, views, edits, a balancing function."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor

from pyro_ksd.checks.large_alphabets import affordable
from pyro_ksd.common.option_checks import check_instance, found
from pyro_ksd.common.user_warnings import warn_user
from pyro_ksd.edits.neighborhoods import BeforeEnd, ModelsUnion, Neighborhood, Substitutions, check_neighborhood, zs
from pyro_ksd.edits.symbol_relations import one_channel
from pyro_ksd.fit_tests.informative import recurrence
from pyro_ksd.kernels.base import Kernel
from pyro_ksd.kernels.contiguous import ContiguousKernel
from pyro_ksd.kernels.embedding import EmbeddingKernel
from pyro_ksd.kernels.end import EndKernel
from pyro_ksd.kernels.length import LengthDistribution
from pyro_ksd.kernels.position import PositionKernel
from pyro_ksd.kernels.repeats import RepeatsKernel
from pyro_ksd.kernels.skip import SkipKernel
from pyro_ksd.kernels.start import StartKernel
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.wrappers.ended import ENDED_EDITS
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.sequences.vector_symbols import VectorAlphabet
from pyro_ksd.stein.balancing import Balancing, as_balancing
from pyro_ksd.stein.length_views import known_length_view, length_view, with_estimated_lengths
from pyro_ksd.stein.views import View, channel_views, default_views, further_views

_RECURRING = 0.2  # the share of runs of symbols that must occur in several sequences


def chosen_views(
    views: str | View | Sequence[str | View] | None,
    neighborhood: Neighborhood | None,
    balancing: str | Balancing | None,
    models: Sequence[SequenceModel],
    sequences: Sequences,
    *,
    given_lengths: str = "",
    possible: Sequences | None = None,
    drawn: Sequences | None = None,
    lengths: LengthDistribution | None = None,
) -> list[View]:
    """The views to look at; of the default ones, those that names ask for, which then all count the same.

    :param models: to be looked at; where no neighborhood is passed, the edits that suit them are taken.
    :param sequences: the data; a large alphabet makes so many edits that only some of them are taken.
    :param given_lengths: why the models are checked given the lengths, with substitutions only; ``""`` if all of them
        give probabilities to lengths.
    :param possible: the data that the model allows; all of them if left out.
    :param drawn: draws from the model, from which its length distribution is estimated; the possible data if left out.
    :param lengths: the distribution of the length under the only model, if it is known.
    """
    if neighborhood is not None:
        check_neighborhood("neighborhood", neighborhood)
    if balancing is not None:
        balancing = as_balancing(balancing)
    if isinstance(views, str | View):
        views = [views]
    _check_asked(views)
    own = [view for view in views or [] if isinstance(view, View)]
    for view in own:
        _check_kernel(view, sequences)
    if views is not None and len(own) == len(views):
        if neighborhood is not None or balancing is not None:
            raise ValueError("neighborhood= and balancing= belong to the default views; state them in your own views")
        return own
    around, are_few = neighborhood, False
    if around is None:
        around, are_few = _default_edits(models, sequences, given_lengths)
    rates = as_balancing("barker") if balancing is None else balancing
    keeps_lengths = _keeps_lengths(around)
    if keeps_lengths and not given_lengths and views is not None and "length" in views:
        raise ValueError(
            "views: found 'length', but neighborhood= has only substitutions, which never change a length; leave out "
            "one of them"
        )
    length = None
    can_change = not given_lengths and not keeps_lengths and not is_read_off_data(sequences)
    if len(models) == 1 and can_change and _asks_for(views, "length"):
        known = sequences if possible is None else possible
        typical = known if drawn is None else drawn
        if lengths is not None:
            length = known_length_view(lengths, around.tail, rates)
        if length is None:
            length = length_view(models[0], typical, around.tail, rates, drawn=drawn is not None)
    default = {view.name: view for view in default_views(around, rates, length)}
    if given_lengths or keeps_lengths:
        del default["length"]
    if views is None and is_read_off_data(sequences):
        default = {view.name: view for view in channel_views(around, rates)}
        warn_user(
            f"the {sequences.alphabet_size} vectors of the alphabet were read off the data, so edits switch one "
            "channel of a vector, and the views count channels: whole vectors are too rare to compare, and lengths are "
            "not checked. State the alphabet, Sequences.of(data, alphabet=vectors), to have the other views"
        )
    if views is None and are_few:
        _leave_out_rare(default, sequences)
    asked = list(default) if views is None else views
    further = {view.name: view for view in further_views(around, rates)}
    default = further | default
    for name in asked:
        if isinstance(name, str) and name not in default:
            default[name] = _numbered_view(name, default)
    if views is None:
        return [default[name] for name in asked if isinstance(name, str)]
    return [view if isinstance(view, View) else replace(default[view], weight=1.0) for view in asked]


def views_beside_draws(
    views: Sequence[View], asked: str | View | Sequence[str | View] | None, drawn: Sequences | None
) -> list[View]:
    """The views where null draws come from the model, so that estimates from draws are as good as exact values.

    :param views: those of :func:`chosen_views`.
    :param asked: what the user passed; views of the user's own stay as they are.
    :param drawn: the draws from which the lengths were estimated. With covariates, the lengths of all of them together
        would not show that those of one covariate are wrong, so the views stay as they are.
    """
    if drawn is None or drawn.covariates is not None:
        return list(views)
    own = [asked] if isinstance(asked, str | View) else asked or []
    return [view if view in own else with_estimated_lengths(view) for view in views]


def _check_kernel(view: View, sequences: Sequences) -> None:
    try:
        view.kernel.check_data(sequences)
    except ValueError as error:
        raise ValueError(f"view {view.name!r}: {error}") from error


def warn_of_constant_features(views: Sequence[View], statistics: Tensor) -> None:
    """Warns of functions of the user's own that no edit changes, so that their views fit any model.

    :param statistics: ``[M, V]``, all statistics that were computed: of the data, of null draws, or of several models.
    """
    for view, own in zip(views, statistics.T, strict=True):
        if isinstance(view.kernel, EmbeddingKernel) and not own.any():
            warn_user(
                f"view {view.name!r}: its features never change where a sequence is edited, or in one sequence only, "
                "so they say nothing about the model; look at what the function gives for the data and for their edits"
            )


def _asks_for(views: Sequence[str | View] | None, name: str) -> bool:
    return views is None or name in views


def _numbered_view(name: str, known: Mapping[str, View]) -> View:
    """A view whose name has a number at its end, such as ``content-4``, from one of the same kind."""
    kinds: dict[str, tuple[View, Callable[[int], Kernel[Any]]]] = {
        "content": (known["content-1"], ContiguousKernel),
        "start": (known["start"], StartKernel),
        "end": (known["end"], EndKernel),
        "skip": (known["skip"], lambda distance: SkipKernel((distance,))),
        "position": (known["position"], PositionKernel),
        "repeats": (known["repeats"], RepeatsKernel),
    }
    match = re.fullmatch(r"([a-z]+)-([1-9]\d?)", name)
    if match is None or match[1] not in kinds:
        raise ValueError(
            f"views: expected names out of {sorted(known)}, a kind with a number, such as content-4, position-3, "
            f"skip-5, start-2 or repeats-6, or View objects, found {name!r}"
        )
    like, kernel = kinds[match[1]]
    return View(name, like.operator, kernel(int(match[2])))


def _check_asked(views: object) -> None:
    """Checks that views are asked for by names or as views."""
    if views is None:
        return
    words = "names of views, such as 'length', or View objects"
    if not isinstance(views, Sequence) or not views:
        raise ValueError(f"views: expected {words}, in a list of at least one, found {found(views)}")
    for view in views:
        check_instance("views", view, (str, View), words)
    names = [view.name if isinstance(view, View) else view for view in views]
    if len(set(names)) < len(names):
        raise ValueError(f"views: expected distinct names, found {names}")


def _leave_out_rare(views: dict[str, View], sequences: Sequences) -> None:
    """Leaves out views of pairs and triples that hardly ever occur in two sequences, with a warning.

    A few edits of a large alphabet reach the n-grams of one sequence from another by chance alone: there are many that
    raise the statistic a little and few that would lower it much, which random signs take for a fault.
    """
    rare = [f"content-{size}" for size in (2, 3) if recurrence(sequences, size) < _RECURRING]
    if not rare:
        return
    for name in rare:
        del views[name]
    warn_user(
        f"left out {' and '.join(rare)}: with few edits of a large alphabet these views need n-grams that occur in "
        f"more than one sequence, and fewer than {100 * _RECURRING:.0f} % of those in the data do; pass views= to use "
        "them"
    )


def _default_edits(
    models: Sequence[SequenceModel], sequences: Sequences, given_lengths: str
) -> tuple[Neighborhood, bool]:
    """The edits for models, where the user states none, and whether they are a few of those of a large alphabet."""
    suited = _suited(models)
    if suited is not None and suited is not ENDED_EDITS:
        return suited, False
    if given_lengths:
        warn_user(given_lengths)
    if is_read_off_data(sequences):
        switches = Substitutions(symbols=one_channel(sequences))
        return switches if suited is None else BeforeEnd(switches), False
    around = Substitutions() if given_lengths else zs()
    if suited is not None:
        around = BeforeEnd(around) if given_lengths else suited
    chosen = affordable(around, models, sequences, lengths=not given_lengths)
    return chosen, chosen is not around


def is_read_off_data(sequences: Sequences) -> bool:
    """Whether the symbols are vectors that were read off the data, so that others may exist."""
    return isinstance(sequences.alphabet, VectorAlphabet) and sequences.alphabet.of_data


def _suited(models: Sequence[SequenceModel]) -> Neighborhood | None:
    """The edits that suit the models, if any of them states some."""
    stated = list(dict.fromkeys(around for model in models if (around := model.default_neighborhood) is not None))
    if len(stated) < 2:
        return stated[0] if stated else None
    return ModelsUnion(tuple(stated))


def check_keeps_length(views: Sequence[View], sequences: Sequences, given_lengths: str) -> None:
    """Checks that no view has edits that change the length, for a model that is checked given the lengths.

    :param given_lengths: why it is.
    """
    for view in views:
        edits = view.operator.neighborhood.edits(sequences)
        if any(block.growth and len(block) for block in edits.blocks):
            raise ValueError(f"view {view.name!r}: found edits that change the length, but {given_lengths}")


def keep_lengths(views: Sequence[View]) -> bool:
    """Whether no edit of any view changes a length, so that they see a model given the lengths."""
    return all(_keeps_lengths(view.operator.neighborhood) for view in views)


def _keeps_lengths(neighborhood: Neighborhood) -> bool:
    return neighborhood.kinds <= {"substitution", "double substitution"}


def kinds_of_edits(views: Sequence[View]) -> str:
    """The kinds of edits of all views, in words."""
    return ", ".join(sorted({kind for view in views for kind in view.operator.neighborhood.kinds}))
