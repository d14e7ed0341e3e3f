# SPDX-License-Identifier: Apache-2.0
"""The global sites of a program: their shapes and supports, and values for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from pyro import poutine
from pyro.distributions import ImproperUniform
from pyro.poutine.messenger import Messenger
from pyro.poutine.trace_struct import Trace
from torch import Tensor
from torch.distributions import transform_to
from torch.distributions.constraints import Constraint

from pyro_ksd.common.option_checks import check_mapping
from pyro_ksd.common.tensor_checks import shown
from pyro_ksd.models.programs.exact_probabilities import innermost
from pyro_ksd.models.programs.plate_layout import in_plate, sample_sites
from pyro_ksd.models.programs.repeatability import MODULE_WEIGHT, InitialParams
from pyro_ksd.models.session_state import isolated

Shapes = dict[str, torch.Size]

_ROUNDING = {"rtol": 1e-4, "atol": 1e-6}  # how far a value may be outside of its support


@dataclass(frozen=True)
class GlobalSite:
    """What values a global site takes.

    :ivar shape: of one value.
    :ivar kind: the name of its distribution, or ``"pyro.param"``.
    :ivar support: what values it can have; ``None`` if its distribution does not say.
    """

    shape: torch.Size
    kind: str
    support: Constraint | None

    @property
    def wanted(self) -> str:
        """What is expected of a value."""
        if self.support is None:
            return "real numbers"
        words = " ".join(str(self.support).split())  # tensors of bounds take several lines
        return f"values in the support of {self.kind}, {words}"


@dataclass(frozen=True)
class GlobalSites:
    """The sites of a program, by name.

    :ivar sites: the global latent sites and the ``pyro.param`` sites, which are the same for all sequences.
    :ivar local: for each site that belongs to each sequence, what to do with it.
    """

    sites: Mapping[str, GlobalSite]
    local: Mapping[str, str]

    @property
    def shapes(self) -> Shapes:
        """The shapes of the global sites."""
        return {name: site.shape for name, site in self.sites.items()}


class Bound(Messenger):
    """Gives values to latent sample sites and to ``pyro.param`` sites, by name.

    :param initial: keeps the ``pyro.param`` sites that the program initializes itself.
    """

    def __init__(self, values: Mapping[str, Tensor], initial: InitialParams) -> None:
        super().__init__()
        self._values = values
        self._initial = initial

    def _pyro_sample(self, msg: Any) -> None:
        if msg["name"] in self._values and not msg["is_observed"]:
            msg["value"] = self._values[msg["name"]]
            msg["is_observed"] = True

    def _pyro_param(self, msg: Any) -> None:
        if msg["name"] in self._values:
            msg["value"] = self._values[msg["name"]]
            msg["done"] = True
        else:
            self._initial.prepare(msg)


class _Drawable(Messenger):
    """Gives some value to sites with an improper prior, which cannot be drawn."""

    def _pyro_sample(self, msg: Any) -> None:
        if isinstance(innermost(msg["fn"]), ImproperUniform) and msg["value"] is None:
            msg["value"] = transform_to(msg["fn"].support)(torch.zeros(msg["fn"].shape()))
            msg["done"] = True


def bind(
    program: Callable[..., Any], values: Mapping[str, Tensor], initial: InitialParams | None = None
) -> Callable[..., Any]:
    """The program with values for some of its latent sample sites and ``pyro.param`` sites.

    :param initial: keeps the ``pyro.param`` sites that the program initializes itself.
    """
    bound: Callable[..., Any] = Bound(values, InitialParams() if initial is None else initial)(program)
    return bound


def sites_of(program: Callable[..., Any], *arguments: Any, seed: int = 0) -> GlobalSites:
    """The global sites of a program, and those that belong to each sequence.

    :param arguments: of the program, the tokens ``[N, T]`` first; nothing for a program without arguments.
    """
    return _sites(_traced(program, *arguments, seed=seed), arguments, frozenset())


def param_values(program: Callable[..., Any], *arguments: Any) -> dict[str, Tensor]:
    """The values of a program's ``pyro.param`` sites and of the weights of its modules, as they are now."""
    nodes = _traced(program, *arguments).nodes.items()
    return {name: node["value"].detach().clone() for name, node in nodes if node["type"] == "param"}


def sites_under(values: Mapping[str, Any], program: Callable[..., Any], *arguments: Any) -> GlobalSites:
    """The same for a program that does not run under draws from its priors, but under the values that a user passes.

    A prior in single precision may not go together with data and values in double precision.
    """
    tensors = {name: as_value("parameters", name, value) for name, value in values.items()}
    trace = _traced(bind(program, tensors), *arguments)
    return _sites(trace, arguments, frozenset(tensors))


def _sites(trace: Trace, arguments: Sequence[Any], bound: frozenset[str]) -> GlobalSites:
    """The sites of a trace in which some have values that a user passes."""
    plate = _plate_of_sequences(trace, len(arguments[0])) if arguments else None
    advice = (
        f"it stands inside the plate {plate!r}: leave it out, and sum it out if it is discrete, "
        'infer={"enumerate": "parallel"}, or integrate it out if it is continuous, marginal=Marginal()'
    )
    local = {name: advice for name, site in sample_sites(trace) if plate is not None and in_plate(site, plate)}
    latent = {
        name for name, site in sample_sites(trace) if name not in local and (name in bound or not site["is_observed"])
    }
    params = {name for name, site in trace.nodes.items() if site["type"] == "param"}
    return GlobalSites({name: _site(trace.nodes[name]) for name in sorted(latent | params)}, local)


def _traced(program: Callable[..., Any], *arguments: Any, seed: int = 0) -> Trace:
    with isolated(validate=False, seed=seed):
        return poutine.trace(_Drawable()(program)).get_trace(*arguments)


def _plate_of_sequences(trace: Trace, size: int) -> str | None:
    """The name of the one plate over ``size`` sequences in which all observed sites stand that are in such plates."""
    stacks = [site["cond_indep_stack"] for _, site in sample_sites(trace) if site["is_observed"]]
    names = [{frame.name for frame in stack if frame.vectorized and frame.size == size} for stack in stacks]
    common = set.intersection(*filter(None, names)) if any(names) else set()
    return common.pop() if len(common) == 1 else None


def _site(node: Mapping[str, Any]) -> GlobalSite:
    """What a site of a trace takes."""
    if node["type"] == "param":
        return GlobalSite(node["value"].shape, "pyro.param", node["kwargs"].get("constraint"))
    try:
        support = node["fn"].support
    except NotImplementedError:  # some distributions of users do not define it
        support = None
    return GlobalSite(torch.Size(node["fn"].shape()), type(innermost(node["fn"])).__name__, support)


def checked_point(
    values: Mapping[str, Any], sites: GlobalSites, program: Callable[..., Any], arguments: Sequence[Any]
) -> dict[str, Tensor]:
    """One value for each named parameter of a program.

    :raises ValueError: naming a site that the program does not have, or whose value has another shape or is not in the
        support of the site.
    """
    check_names("parameters", values, sites.shapes, sites.local)
    point = {name: as_value("parameters", name, value, sites.sites[name].wanted) for name, value in values.items()}
    for name, value in point.items():
        check_shape("parameters", name, value, sites.sites[name].shape)
    check_supports("parameters", {name: value[None] for name, value in point.items()}, sites, program, arguments)
    return point


def check_by_name(option: str, values: object) -> None:
    """Checks that values have the names of sites.

    >>> check_by_name("parameters", [0.5])
    Traceback (most recent call last):
    ValueError: parameters: expected values by the names of the sites, found [0.5]; pass a dictionary
    """
    check_mapping(option, values, "values by the names of the sites")


def other_values(values: Mapping[str, Any], known: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Other values of some sites that have values already.

    :raises ValueError: naming a site that has none, or one of another shape.
    """
    check_by_name("values", values)
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise ValueError(f"values: expected some of the sites {sorted(known)}, found {unknown}")
    found = {name: as_value("values", name, value) for name, value in values.items()}
    for name, value in found.items():
        check_shape("values", name, value, known[name].shape)
    return found


def check_names(option: str, values: Mapping[str, Any], shapes: Shapes, local: Mapping[str, str]) -> None:
    """Checks that the program has a global site for each name.

    :param local: for each site that belongs to each sequence, what to do with it.
    """
    for name in values:
        if MODULE_WEIGHT in name:
            raise ValueError(
                f"{option}: site {name!r} is a weight of a module, which pyro.module leaves as it is, so that a value "
                "would not count; put it into the module itself, module.load_state_dict(...), or use a PyroModule"
            )
        if name in local:
            raise ValueError(
                f"{option}: site {name!r} belongs to each sequence, expected values of global sites alone, "
                f"{sorted(shapes)}; {local[name]}"
            )
    unknown = sorted(set(values) - set(shapes))
    if unknown:
        raise ValueError(f"{option}: the program has no global site {unknown}, expected some of {sorted(shapes)}")


def as_value(option: str, name: str, value: Any, wanted: str = "real numbers") -> Tensor:
    """What a user passes for a site, as a tensor.

    >>> as_value("posterior", "stop", "often")
    Traceback (most recent call last):
    ValueError: posterior: site 'stop': expected real numbers, found 'often'
    """
    try:
        tensor = torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError):
        tensor = None
    if tensor is None or tensor.is_complex() or tensor.is_meta:
        raise ValueError(f"{option}: site {name!r}: expected {wanted}, found {shown(value)}")
    return tensor


def check_shape(option: str, name: str, value: Tensor, shape: torch.Size) -> None:
    """Checks that there is one value for a site."""
    if value.shape != shape:
        raise ValueError(
            f"{option}: site {name!r} has the shape {list(value.shape)}, expected {list(shape)}; pass one value, not a "
            "batch of draws"
        )


def check_supports(
    option: str,
    draws: Mapping[str, Tensor],
    sites: GlobalSites,
    program: Callable[..., Any],
    arguments: Sequence[Any],
) -> None:
    """Checks that values of global sites are in the supports of their distributions, up to rounding.

    :param draws: ``[D, ...]`` by name, of the shapes of the sites.
    :param program: to see what a support is under other values, since it may depend on them.
    """
    for name, values in draws.items():
        missing = ~_each(~values.isnan())
        if missing.any():
            fix = "; remove them, and see why the sampler fails" if len(missing) > 1 else ""
            raise ValueError(
                f"{option}: site {name!r}: expected {sites.sites[name].wanted}, found NaN{_where(missing)}{fix}"
            )
    for name, values in draws.items():
        outside = ~_inside(sites.sites[name].support, values)
        if not outside.any():
            continue
        draw = int(outside.nonzero()[0])
        point = {other: value[draw] for other, value in draws.items()}
        site = _site_under(point, name, sites.sites[name], program, arguments)
        if not _inside(site.support, values[draw : draw + 1]).all():
            raise ValueError(
                f"{option}: site {name!r}: expected {site.wanted}, found {_range(values[draw])}{_where(outside)}; "
                "transform unconstrained values into the support"
            )


def _where(wrong: Tensor) -> str:
    """Which draws are wrong, from a boolean ``[D]``; nothing for a single value."""
    return f" in {int(wrong.sum())} of {len(wrong)} draws" if len(wrong) > 1 else ""


def _range(value: Tensor) -> str:
    least, most = value.min().item(), value.max().item()
    return f"{most:g}" if value.ndim == 0 else f"values from {least:g} to {most:g}"


def _inside(support: Constraint | None, values: Tensor) -> Tensor:
    """Which values are in a support, up to rounding, boolean ``[D]``."""
    if support is None:
        return torch.ones(len(values), dtype=torch.bool)
    values = values.double()
    inside = _each(support.check(values))
    if inside.all():
        return inside
    try:
        transform = transform_to(support)
        nearest = transform(transform.inv(values))
    except (NotImplementedError, RuntimeError, ValueError):  # discrete values, or some far from the support
        return inside
    return inside | _each(torch.isclose(nearest, values, **_ROUNDING))  # type: ignore[arg-type]


def _each(mask: Tensor) -> Tensor:
    """Which draws are true throughout, boolean ``[D]`` from ``[D, ...]``."""
    return mask.flatten(1).all(1) if mask.ndim > 1 else mask


def _site_under(
    point: Mapping[str, Tensor],
    name: str,
    site: GlobalSite,
    program: Callable[..., Any],
    arguments: Sequence[Any],
) -> GlobalSite:
    """A site under values of all sites; as it was if the program does not run under them, or does not reach it."""
    try:
        node = _traced(bind(program, point), *arguments).nodes.get(name)
    except Exception:  # a program may fail in any way under values that it is not made for
        return site
    return site if node is None else _site(node)
