# SPDX-License-Identifier: Apache-2.0
"""The one call: does the model fit the data?"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any, Literal

import torch
import xarray as xr
from torch import Tensor

from pyro_ksd.balancing import Balancing
from pyro_ksd.containers import dataset
from pyro_ksd.inputs import as_sequences, check_keeps_length, views_to_check
from pyro_ksd.localization import localize
from pyro_ksd.models.base import SequenceModel, check_data, default_neighborhood, impossible_sites
from pyro_ksd.models.convert import as_model
from pyro_ksd.models.draws import ModelDraws
from pyro_ksd.models.guards import has_length_law
from pyro_ksd.models.sampled import Sampler
from pyro_ksd.neighborhoods import Neighborhood
from pyro_ksd.predictive import posterior_predictive
from pyro_ksd.report import Impossible, predictive_datatree, to_datatree
from pyro_ksd.sequences import Sequences
from pyro_ksd.stein import called_impossible, impossible_rows
from pyro_ksd.testing import goodness_of_fit
from pyro_ksd.views import View


def ksd_check(
    model: Any,
    data: Any,
    *,
    views: str | View | Sequence[str | View] | None = None,
    neighborhood: Neighborhood | None = None,
    balancing: str | Balancing | None = None,
    parameters: Mapping[str, Tensor] | None = None,
    order: int | None = None,
    sampler: Sampler | None = None,
    posterior: Any = None,
    refit: Callable[[Any, Sequences], Any] | None = None,
    bootstrap: Literal["auto", "parametric", "wild"] = "auto",
    num_bootstrap: int = 500,
    level: float = 0.05,
    gram: bool = False,
    seed: int = 0,
    progress: bool = True,
) -> xr.DataTree:
    """Checks whether the data could have come from the model, and where it fails if they could not.

    Sequences to which the model gives probability 0 are reported, with a warning, and the others are checked.

    :param model: a Pyro program ``model(sequences, lengths)``, ``model(x)`` or ``model()``, a distribution, or an
        object with ``log_joint`` and ``log_ratio``; see :func:`~pyro_ksd.models.as_model`.
    :param data: :class:`~pyro_ksd.sequences.Sequences`, or what :meth:`~pyro_ksd.sequences.Sequences.of` takes.
    :param views: what to look at: names of :func:`~pyro_ksd.views.default_views`, ``"content-4"`` and so on for longer
        runs of symbols, or views of your own. Left out, all default views. Change it if you care for one aspect alone
        (more power for it), or for one that no default view sees.
    :param neighborhood: the edits of the default views. Left out, all substitutions, insertions and deletions; only
        substitutions for a program that does not say how long a sequence is; for a model that says which edits suit it,
        as :class:`~pyro_ksd.models.AutoregressiveModel` does, those. Fewer edits take less time and have less power.
    :param balancing: the balancing function of the default views, ``"barker"`` if left out. ``"mpf"`` sees small faults
        of a model better in small data, but its weights are unbounded.
    :param parameters: values of a program's global sample sites and ``pyro.param`` sites, by name.
    :param order: the order of a program whose steps depend only on the ``order`` symbols before them; makes the check
        of long sequences much faster. See :class:`~pyro_ksd.models.TabulatedModel`.
    :param sampler: draws sequences from a model that cannot: takes their number and a generator.
    :param posterior: draws of a program's global sites, for a posterior predictive check: an ``MCMC`` object after its
        run, draws by name, a guide, a ``Predictive``, or an ArviZ container with a group ``posterior``. Of more than
        ``num_bootstrap`` draws, so many are taken at even distances. The p-values are posterior predictive ones.
    :param refit: for a model whose parameters were estimated from the same data: ``refit(model, sequences)`` fits it
        and gives a model, or values of its parameters by name. It is applied to the data and to each null draw. See
        :class:`~pyro_ksd.models.RefitMarkov` and :class:`~pyro_ksd.models.RefitSVI`.
    :param bootstrap: where the null draws come from. ``"parametric"`` draws data sets from the model and has the exact
        level; ``"wild"`` needs no samples and is right for large data; ``"auto"`` is parametric where the model can be
        sampled and there are fewer than 100 sequences.
    :param num_bootstrap: the number ``B`` of null draws. The smallest p-value of a view is ``1 / (B + 1)``, and that of
        all ``V`` views together up to ``V / (B + 1)`` where only one sees a fault: take more for a smaller level.
    :param level: the p-value up to which the verdict is that the model does not fit.
    :param gram: whether to keep the Stein kernel matrices, for :func:`~pyro_ksd.plots.plot_gram`; they take
        ``8 n²`` bytes a view.
    :param seed: of all random numbers; the same seed gives the same result.
    :param progress: whether to show progress bars.
    :returns: the groups of :func:`~pyro_ksd.report.to_datatree`. Read them with :func:`~pyro_ksd.tables.summary`, see
        them with :func:`~pyro_ksd.plots.plot_check`.

    >>> import torch
    >>> from pyro_ksd import MarkovSequence, verdict
    >>> coin = torch.tensor([0.5, 0.5])
    >>> model = MarkovSequence.from_transitions(coin, coin.expand(2, 2), stop=0.2)
    >>> check = ksd_check(model, ["HTHTHT", "THTH", "HTHTHTHTH", "THTHTHT", "HTH"] * 4, progress=False)
    >>> print(verdict(check))  # too regular for a coin
    the model does not fit (p = 0.008): it makes 'HTH' and 'THT' too rarely and 'TTH', 'HTT', 'THH', ... too often
    """
    if not 0 < level < 1:
        raise ValueError(f"level: expected a number between 0 and 1, such as 0.05, found {level}")
    sequences = as_sequences(data, model)
    if posterior is not None:
        others: dict[str, Any] = {"parameters": parameters, "sampler": sampler, "refit": refit, "gram": gram or None}
        others["bootstrap"] = None if bootstrap == "auto" else bootstrap
        given = [f"{name}=" for name, value in others.items() if value is not None]
        if given:
            raise ValueError(f"posterior: expected no {', '.join(given)} beside it, found it; leave it out")
        draws = ModelDraws(model, sequences, _draws_of(posterior), num_draws=num_bootstrap, order=order)
        ready: SequenceModel = draws[0]
    elif refit is not None:
        if parameters is not None:
            raise ValueError("refit: expected no parameters= beside it, which it finds itself; leave them out")
        fit = _refitted(refit, model, order, sampler)
        ready = fit(sequences)
    else:
        ready = as_model(model, sequences, parameters=parameters, order=order, sampler=sampler)
    lengths = isinstance(model, SequenceModel) or has_length_law(ready, sequences)
    chosen = views_to_check(views, neighborhood, balancing, lengths, default_neighborhood(ready))
    if not lengths:
        check_keeps_length(chosen, sequences[:10])
    possible, impossible = _set_apart(ready, sequences)
    symbols = [str(symbol) for symbol in sequences.symbols]
    settings: dict[str, str | int | float] = {
        "seed": seed,
        "level": level,
        "edits": ", ".join(sorted({kind for view in chosen for kind in view.operator.neighborhood.kinds})),
    }
    if posterior is not None:
        found = posterior_predictive(draws, possible, chosen, symbols, seed=seed, progress=progress)
        return predictive_datatree(found, sequences, impossible, settings=settings)
    result = goodness_of_fit(
        ready,
        possible,
        chosen,
        bootstrap=bootstrap,
        refit=None if refit is None else fit,
        num_bootstrap=num_bootstrap,
        seed=seed,
        progress=progress,
    )
    started = perf_counter()
    places = localize(result, symbols, progress=progress)
    settings["seconds_localization"] = perf_counter() - started
    return to_datatree(result, places, sequences, impossible, settings=settings, gram=gram)


def _refitted(
    refit: Callable[[Any, Sequences], Any], model: Any, order: int | None, sampler: Sampler | None
) -> Callable[[Sequences], SequenceModel]:
    """The model as it comes out of a fit to sequences."""

    def fit(sequences: Sequences) -> SequenceModel:
        found = refit(model, sequences)
        if isinstance(found, Mapping):
            return as_model(model, sequences, parameters=found, order=order, sampler=sampler)
        return as_model(found, sequences, order=order, sampler=sampler)

    return fit


def _draws_of(posterior: Any) -> Any:
    """Draws by name from the ``posterior`` group of an ArviZ container; anything else as it is."""
    if not (isinstance(posterior, xr.DataTree) or hasattr(posterior, "groups")):
        return posterior
    group = dataset(posterior, "posterior").transpose("chain", "draw", ...)
    return {str(name): torch.as_tensor(values.values) for name, values in group.data_vars.items()}


def _set_apart(model: SequenceModel, sequences: Sequences) -> tuple[Sequences, Impossible]:
    """The sequences that the model can make, and those that it cannot."""
    check_data(model, sequences)
    rows = impossible_rows(model, sequences)
    if len(rows) == 0:
        return sequences, Impossible(rows, [])
    told = called_impossible(model, sequences, rows)
    if len(sequences) - len(rows) < 2:
        raise ValueError(f"{told}, and too few others are left to check: widen the model")
    warnings.warn(f"{told}; the check goes on with the others", UserWarning, stacklevel=3)
    kept = torch.ones(len(sequences), dtype=torch.bool, device=sequences.device).index_fill_(0, rows, False)
    return sequences[kept], Impossible(rows, impossible_sites(model, sequences[rows]))
