# SPDX-License-Identifier: Apache-2.0
"""From whatever a user passes as a model to the model that the engine calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyro.distributions import DiscreteHMM
from torch import Tensor
from torch.distributions import Distribution

from pyro_ksd.common.option_checks import check_instance
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.duck_typing import adapted
from pyro_ksd.models.networks.torch_distribution import DiscreteHMMModel, TorchDistributionModel
from pyro_ksd.models.programs.call_conventions import is_loop
from pyro_ksd.models.programs.loop import LoopProgram
from pyro_ksd.models.programs.marginal import Marginal, MarginalProgram
from pyro_ksd.models.programs.validation import check_program
from pyro_ksd.models.programs.vectorized import VectorizedProgram
from pyro_ksd.models.wrappers.ended import EndedModel, end_codes
from pyro_ksd.models.wrappers.sampler import Sampler, with_sampler
from pyro_ksd.models.wrappers.tabulated import TabulatedModel
from pyro_ksd.sequences.container import Sequences


def as_model(
    model: Any,
    data: Any,
    *,
    parameters: Mapping[str, Tensor] | None = None,
    order: int | None = None,
    end: Any = None,
    marginal: Marginal | None = None,
    sampler: Sampler | None = None,
) -> SequenceModel:
    """The model made from what a user passes.

    ==================================  ==============================================================================
    what is passed                      the result
    ==================================  ==============================================================================
    ``program(sequences, lengths)``     :class:`~pyro_ksd.models.VectorizedProgram`, validated
    ``program(x)``                      the same, with one tensor padded with -1 after the ends
    ``program()``                       :class:`~pyro_ksd.models.LoopProgram`, one sequence at a time
    a distribution                      itself if it is one of this package, else scored by its ``log_prob``
    an object with ``log_joint``, ...   itself, adapted to :class:`~pyro_ksd.models.SequenceModel`
    ==================================  ==============================================================================

    :param data: the sequences that the model is for, as :meth:`~pyro_ksd.sequences.Sequences.of` takes them; programs
        are validated on some of them.
    :param parameters: values of a program's global sample sites and ``pyro.param`` sites, by name.
    :param order: states that a symbol, and whether it is the last one, depends on no more than ``order`` symbols before
        it: see :class:`~pyro_ksd.models.TabulatedModel`.
    :param end: the symbol with which every sequence ends, and which occurs nowhere else, or a list of such symbols: see
        :class:`~pyro_ksd.models.EndedModel`. For a model that draws symbols until it draws one of them.
    :param marginal: how to integrate over continuous latents that each sequence has, such as the code of a VAE: see
        :class:`~pyro_ksd.models.Marginal`.
    :param sampler: a function that draws sequences, if the model has no sampler of its own. It takes the number of
        sequences and a generator.

    >>> import pyro
    >>> def program(sequences, lengths):
    ...     with pyro.plate("sequences", len(lengths)):
    ...         pyro.factor("length", -2.0 * lengths)
    >>> data = Sequences.of(["ab", "b", "aba"])
    >>> as_model(program, data).log_joint(data).tolist()
    [-4.0, -2.0, -6.0]
    """
    sequences = Sequences.of(data)
    if marginal is not None:
        check_instance("marginal", marginal, Marginal, "how to integrate over local latents, Marginal(...)")
    ready = _converted(adapted(model), sequences, parameters, marginal)
    if order is not None:
        ready = TabulatedModel(ready, order, sequences)
    if end is not None and ready.ends != (ends := end_codes(end, sequences)):
        ready = EndedModel(ready, ends)
    return ready if sampler is None else with_sampler(ready, sampler)


def _converted(
    model: Any, sequences: Sequences, parameters: Mapping[str, Tensor] | None, marginal: Marginal | None
) -> SequenceModel:
    if parameters is not None and not isinstance(parameters, Mapping):
        raise ValueError(
            f"parameters: expected values by name, found {type(parameters).__name__}; pass a guide or draws as "
            "posterior=, or one point, such as guide.median()"
        )
    if parameters and (isinstance(model, Distribution | SequenceModel) or not callable(model)):
        found = model.name if isinstance(model, SequenceModel) else type(model).__name__
        raise ValueError(f"parameters: expected a Pyro program to pass them to, found {found}, which has its own")
    if marginal is not None and (not callable(model) or isinstance(model, SequenceModel | Distribution)):
        raise ValueError("marginal: expected a Pyro program with latents to integrate over, found a model without them")
    if isinstance(model, VectorizedProgram):
        check_program(model, sequences)
    if isinstance(model, SequenceModel):
        return model
    if isinstance(model, DiscreteHMM):
        return DiscreteHMMModel(model, sequences.alphabet_size)
    if isinstance(model, Distribution):
        return TorchDistributionModel(model, sequences.alphabet_size)
    if not callable(model):
        raise ValueError(
            f"model: expected a Pyro program, a distribution, or an object with log_joint and log_ratio, found "
            f"{type(model).__name__}"
        )
    if is_loop(model) and sequences.vectors is not None:
        raise ValueError(
            "model: expected a program model(sequences, lengths) for symbols that are vectors, found one without "
            "arguments, which makes single symbols"
        )
    if is_loop(model):
        if marginal is not None:
            raise ValueError(
                "marginal: expected a program model(sequences, lengths), found one without arguments, which makes a "
                "sequence at a time"
            )
        return LoopProgram(model, sequences.alphabet_size, parameters)
    return checked_program(model, sequences, parameters, marginal)


def checked_program(
    program: Any,
    sequences: Sequences,
    parameters: Mapping[str, Tensor] | None,
    marginal: Marginal | None,
    *others: Mapping[str, Tensor],
) -> VectorizedProgram:
    """A vectorized program, with its latents integrated out where the user says how, after the checks of it.

    :param others: other values of the parameters, for which the error of the integration is found, too.
    """
    if marginal is None:
        plain = VectorizedProgram(program, sequences, parameters)
        check_program(plain, sequences)
        return plain
    integrated = MarginalProgram(program, sequences, parameters, marginal)
    check_program(integrated, sequences)
    integrated.state_error(sequences, [integrated.at(values) for values in others])
    return integrated
