"""Loads the PJRT library for CUDA with its kernels, and makes its client."""

from __future__ import annotations

import os
from collections.abc import Mapping

from dovetail.extend import BackendUnavailableError, Client
from dovetail.extend.pjrt import PjrtError, load_plugin
from dovetail.extend.pjrt import Plugin as PjrtPlugin
from dovetail_cuda import explanations, ffi, libraries
from dovetail_cuda.capabilities import Plugin, require_plugin
from dovetail_cuda.options import client_options

NAME = "cuda"


def load() -> tuple[Plugin, PjrtPlugin]:
    """Load the library, and register every kernel; once in a process.

    Raises:
        BackendUnavailableError: a wheel is missing, or its version is not that of jaxlib.
        PjrtError: the library cannot be used.
    """
    plugin = require_plugin()
    libraries.preload(plugin)
    library = load_plugin(NAME, plugin.library)
    ffi.register(plugin, library)
    return plugin, library


def make_client(options: Mapping[str, object]) -> Client:
    """Create a CUDA client.

    Args:
        options: see `client_options`.

    Returns:
        jaxlib's client on the library's C API.

    Raises:
        BackendUnavailableError: there is none, for the reason that the message states.
        TypeError: an option is unknown or of the wrong type.
        ValueError: its value, or that of an environment variable, is none that it can have.
    """
    chosen = client_options(options)
    plugin, library = load()
    problem = libraries.problem(plugin)
    if problem:
        raise BackendUnavailableError(problem)
    try:
        client: Client = library.make_client(chosen)
    except PjrtError as error:
        situation = explanations.Situation(
            generation=plugin.generation,
            options=chosen,
            visible=os.environ.get("CUDA_VISIBLE_DEVICES"),
        )
        sentence = explanations.why_no_client(str(error), situation)
        if sentence is None:
            raise
        raise BackendUnavailableError(sentence) from error
    return client
