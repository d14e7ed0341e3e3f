# SPDX-License-Identifier: Apache-2.0
"""What the trace of a vectorized program says about its sites, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pyro.poutine.subsample_messenger import _Subsample
from pyro.poutine.trace_struct import Trace

from pyro_ksd.models.session_state import unvalidated

_MOST_ENUMERATED = 20  # enumerated sites without pyro.markov; each takes a tensor dimension, of which there are few

PLATE_EXAMPLE = """
    def model(sequences, lengths):
        with pyro.plate("sequences", len(lengths)):
            for t in pyro.markov(range(sequences.shape[1])):
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"x_{t}", ..., obs=sequences[:, t])
            # or pyro.factor("score", ...) with one value for each sequence"""


@dataclass(frozen=True)
class Layout:
    """How a program is laid out.

    :ivar plate: the name of the plate over the sequences.
    :ivar dim: its dimension, counted from the right.
    :ivar outside: the names of the sites outside this plate, which are the same for all sequences.
    """

    plate: str
    dim: int
    outside: frozenset[str]


def sample_sites(trace: Trace) -> list[tuple[str, dict[str, Any]]]:
    """Name and content of the sites that have a log-probability."""
    nodes = trace.nodes.items()
    return [(name, site) for name, site in nodes if site["type"] == "sample" and not isinstance(site["fn"], _Subsample)]


def in_plate(site: dict[str, Any], plate: str) -> bool:
    """Whether a site stands inside the plate."""
    return any(frame.name == plate for frame in site["cond_indep_stack"])


def is_enumerated(site: dict[str, Any]) -> bool:
    """Whether a site is latent and to be summed out."""
    return not site["is_observed"] and site["infer"].get("enumerate") is not None


def find_layout(trace: Trace, size: int, other: Trace, other_size: int) -> Layout:
    """The layout of a program from two of its traces, with ``size`` and ``other_size`` sequences.

    :raises ValueError: naming the site or plate that does not fit the contract of a vectorized program.
    """
    frames = [frame for _, site in sample_sites(trace) for frame in site["cond_indep_stack"]]
    others = [frame for _, site in sample_sites(other) for frame in site["cond_indep_stack"]]
    _check_subsampling(frames)
    names = {frame.name: frame for frame in frames if frame.vectorized and frame.size == size}
    follows = {frame.name for frame in others if frame.vectorized and frame.size == other_size}
    plates = [frame for name, frame in names.items() if name in follows]
    if len(plates) != 1:
        raise _no_plate(frames, size, other_size, [frame.name for frame in plates])
    plate = plates[0]
    outside = [name for name, site in sample_sites(trace) if not in_plate(site, plate.name)]
    layout = Layout(plate.name, plate.dim, frozenset(outside))
    check_latents(trace, layout)
    _check_globals(trace, other, plate.name)
    return layout


def plate_depth(trace: Trace) -> int:
    """How many dimensions the plates of a program take at the most."""
    frames = (frame for _, site in sample_sites(trace) for frame in site["cond_indep_stack"])
    return max((-frame.dim for frame in frames if frame.vectorized), default=0)


def _check_globals(trace: Trace, other: Trace, plate: str) -> None:
    """Sites outside the plate cancel in ratios only if they are the same for all sequences."""
    again = dict(sample_sites(other))
    for name, site in sample_sites(trace):
        if in_plate(site, plate) or name not in again:
            continue
        with unvalidated():  # values may be outside of their support by rounding
            totals = [float(s["fn"].log_prob(s["value"]).sum()) for s in (site, again[name])]
        if totals[0] != totals[1]:
            raise ValueError(
                f"site {name!r}: stands outside the plate {plate!r}, but its log-probability changes with the "
                f"sequences ({totals[0]:.6g} and {totals[1]:.6g}); move it into the plate, one value for each sequence"
            )


def _check_subsampling(frames: Iterable[Any]) -> None:
    for frame in frames:
        if frame.full_size is not None and frame.size < frame.full_size:
            raise ValueError(
                f"plate {frame.name!r}: found {frame.size} of {frame.full_size} members, expected all of them; "
                "a subsampled plate gives no log-joint for the sequences left out: remove subsample_size"
            )


def _no_plate(frames: list[Any], size: int, other_size: int, found: list[str]) -> ValueError:
    if len(found) > 1:
        return ValueError(
            f"expected one plate over the sequences, found several of their number: {sorted(found)}; put all sites of "
            "a sequence into one plate"
        )
    for frame in frames:
        if not frame.vectorized and frame.size in (size, other_size):
            return ValueError(
                f"plate {frame.name!r}: found a sequential plate (for ... in pyro.plate), expected a vectorized one "
                f"over the sequences:{PLATE_EXAMPLE}"
            )
    sizes = {frame.name: frame.size for frame in frames}
    return ValueError(
        f"expected a plate with as many members as sequences, found {f'the plates {sizes}' if sizes else 'no plate'} "
        f"when the program was tried with {size} sequences and with {other_size}; give it the number of sequences as "
        f"its size:{PLATE_EXAMPLE}"
    )


def check_latents(trace: Trace, layout: Layout) -> None:
    """Checks that a run of a program draws nothing at random: its latent sites are summed out or have values.

    Every run is checked, since a program may have sites at later steps that shorter sequences do not reach.

    :raises ValueError: naming the site, and what to write instead.
    """
    loose = []
    for name, site in sample_sites(trace):
        inside = in_plate(site, layout.plate)
        if not inside and name not in layout.outside and not site["infer"].get("_deterministic"):
            raise ValueError(
                f"site {name!r}: stands outside the plate {layout.plate!r}, but only longer sequences have it; move it "
                "into the plate, one value for each sequence"
            )
        if site["is_observed"]:
            continue
        if not is_enumerated(site):
            raise _latent_inside(name, layout.plate) if inside else _global_without_value(name)
        if not inside:
            raise ValueError(
                f"site {name!r}: found an enumerated latent outside the plate {layout.plate!r}; it would couple all "
                "sequences. Move it inside, or give it a value in parameters="
            )
        if site["infer"].get("_markov_scope") is None:
            loose.append(name)
    if len(loose) > _MOST_ENUMERATED:
        raise ValueError(
            f"found {len(loose)} enumerated sites without pyro.markov ({loose[0]!r}, {loose[1]!r}, ...), each of which "
            "takes a tensor dimension; let the loop over the steps run over pyro.markov(range(...)), which uses the "
            "dimensions again"
        )


def _global_without_value(name: str) -> ValueError:
    return ValueError(
        f"site {name!r}: found a global latent without a value, expected one in parameters= (a point such as "
        "guide.median(); for several models, a point for each by its name) or in all draws of posterior=; it is never "
        "drawn from the prior"
    )


def _latent_inside(name: str, plate: str) -> ValueError:
    if name.endswith("_unobserved"):
        return ValueError(
            f"site {name!r}: found values that obs_mask= leaves unobserved, which would be drawn at random; for steps "
            "after the end, put the site under poutine.mask(mask=t < lengths) with obs= alone"
        )
    return ValueError(
        f"site {name!r}: found a latent inside the plate {plate!r} that is neither observed nor enumerated, so a "
        "sequence has no marginal; observe it (obs=...), sum it out if it is discrete, "
        'infer={"enumerate": "parallel"}, or integrate it out if it is continuous, marginal=Marginal()'
    )
