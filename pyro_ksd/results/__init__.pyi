# SPDX-License-Identifier: Apache-2.0
from .check_table import summary as summary
from .comparison_table import compare_table as compare_table
from .containers import extend as extend
from .containers import to_inference_data as to_inference_data
from .detail_tables import edit_table as edit_table
from .detail_tables import ngram_table as ngram_table
from .detail_tables import sequence_table as sequence_table
from .files import load as load
from .groups import p_value_datatree as p_value_datatree
from .groups import to_datatree as to_datatree
from .pages.report_file import report as report
from .posterior_groups import from_pyro as from_pyro
from .predictive_groups import predictive_datatree as predictive_datatree
from .result_tree import ResultTree as ResultTree
from .shared_groups import common_groups as common_groups
from .verdicts import verdict as verdict
