# SPDX-License-Identifier: Apache-2.0
from .check_table import summary as summary
from .comparison_table import compare_table as compare_table
from .containers import extend as extend
from .containers import to_inference_data as to_inference_data
from .files import load as load
from .groups import common_groups as common_groups
from .groups import predictive_datatree as predictive_datatree
from .groups import to_datatree as to_datatree
from .posterior_groups import from_pyro as from_pyro
from .verdicts import verdict as verdict
