"""Settings of the documentation site, which `nox -s docs` builds into dist/docs."""

from __future__ import annotations

import sys
from pathlib import Path

import dovetail

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

project = "dovetail"
author = "The dovetail authors"
project_copyright = author
version = release = dovetail.__version__

extensions = [
    "myst_nb",
    "sphinx_copybutton",
    "sphinx_design",
    "docstrings",
    "reference",
    "errors_by_code",
    "repository",
    "code_links",
    "gallery",
    "mathml",
    "navigation",
]
exclude_patterns = ["_extensions", "_static"]
nitpicky = True
highlight_language = "text"
smartquotes = False  # the text is shown as it is written

# Markdown. Anchors are those that GitHub makes, so that links work there, too.
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
myst_links_external_new_tab = True
myst_update_mathjax = False
html_math_renderer = "mathml"

# Cells are executed whenever their page is read.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_execution_timeout = 240
nb_merge_streams = True
nb_number_source_lines = False

# Reference.
add_module_names = True
default_role = "code"
maximum_signature_line_length = 88
toc_object_entries = False  # would be copied for every page; `navigation` lists names instead

# What is copied from an example is the program, without prompts and results.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp, .go"

html_theme = "furo"
html_title = "dovetail"
html_static_path = ["_static"]
html_css_files = ["dovetail.css"]
html_logo = html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#9a5b13",
        "color-brand-content": "#2450a8",
        "color-brand-visited": "#2450a8",
        "color-api-background": "#f6f4f0",
        "color-api-name": "#2450a8",
        "color-api-pre-name": "#6b6f76",
    },
    "dark_css_variables": {
        "color-brand-primary": "#e0a458",
        "color-brand-content": "#8fb4ff",
        "color-brand-visited": "#8fb4ff",
        "color-api-background": "#22252b",
        "color-api-name": "#8fb4ff",
        "color-api-pre-name": "#9aa0a8",
    },
}
pygments_style = "friendly"
pygments_dark_style = "one-dark"
