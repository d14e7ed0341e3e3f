# SPDX-License-Identifier: Apache-2.0
"""How the site is built: ``make docs``."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from pathlib import Path

from docutils.nodes import Element, document, reference
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

import pyro_ksd

project = "pyro_ksd"
release = pyro_ksd.__version__
html_title = f"pyro_ksd {release}"
html_theme = "furo"
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
if os.environ.get("PYRO_KSD_QUICK"):
    html_theme_options = {
        "announcement": "Quick build: the tutorials ran with little data and few draws, and their figures are not real."
    }

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.mathjax", "sphinx_design"]

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
myst_dmath_double_inline = True

nb_execution_mode = "cache"  # docs/execute.py fills the cache
nb_execution_timeout = -1
nb_execution_raise_on_error = True
nb_merge_streams = True

# MathJax comes from a package, as one file with its letters drawn, so that the site needs no network.
_MATHJAX = Path(str(find_spec("sphinx-mathjax-offline").origin)).parent / "static" / "mathjax" / "tex-svg.js"
html_static_path = [str(_MATHJAX), "_static"]
mathjax_path = _MATHJAX.name
mathjax3_config = {"svg": {"scale": 0.95}}
html_css_files = ["site.css"]

autosummary_generate = False
autodoc_inherit_docstrings = False
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
add_module_names = False
toc_object_entries_show_parents = "hide"

# Names of other packages are left as they are: their inventories would have to be fetched.
_OTHERS = "collections|matplotlib|numpy|os|pandas|pathlib|pyro|torch|typing|xarray"
_FORMS = "DisagreementError|HankelWords|VerifiedStandIn"
_NAMES = f"Checkpoint|FeatureSums|FlatEdits|Matrix|PartOfBar|Replicates|{_FORMS}"
_OWN = rf"(pyro_ksd\..*\.)?({_NAMES})"
_TYPES = rf"Axes|Distribution|ModelBatch|Network|Numbers|Seed|Tensor|{_OWN}|(np|npt)\..*"
nitpick_ignore_regex = [("py:.*", rf"({_OTHERS})\..*"), ("py:(class|exc)", _TYPES)]


def public_name(app: Sphinx, env: BuildEnvironment, node: pending_xref, shown: Element) -> reference | None:
    """Finds what is documented under a shorter name than that of the module that defines it."""
    if node.get("refdomain") != "py":
        return None
    parts = node["reftarget"].split(".")
    known = env.domains.python_domain.objects
    shorter = (".".join(parts[:i] + parts[j:]) for i in range(1, len(parts)) for j in range(i + 1, len(parts)))
    for name in shorter:
        if name in known:
            return env.domains.python_domain.resolve_xref(
                env, node["refdoc"], app.builder, node["reftype"], name, node, shown
            )
    return None


def leave_out_empty_patterns(app: Sphinx, docname: str, source: list[str]) -> None:
    """Lets the menu have patterns of pages that some command is yet to write, without a warning."""
    folder = Path(app.srcdir)
    if docname == app.config.root_doc:
        source[0] = re.sub(
            r"^\w+/\w*\*\n",
            lambda line: line[0] if any(folder.glob(f"{line[0].strip()}.md")) else "",
            source[0],
            flags=re.M,
        )


def enter_tutorials(app: Sphinx, doctree: document) -> None:
    """Lets links to tutorials go by the symbolic link in this folder, and not behind it, outside of the site."""
    behind = Path(app.srcdir, "tutorials").resolve()
    for node in doctree.findall(pending_xref):
        target = Path(node["reftarget"])
        if node.get("refdomain") == "doc" and target.parent == behind:
            node["reftarget"] = f"tutorials/{target.name}"


def setup(app: Sphinx) -> None:
    app.connect("source-read", leave_out_empty_patterns)
    app.connect("doctree-read", enter_tutorials)
    app.connect("missing-reference", public_name)
