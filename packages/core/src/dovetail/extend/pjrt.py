"""Tools for backends on a PJRT library.

They load the library, make clients, register custom calls, and compile ahead of time:

    from dovetail.extend.pjrt import load_plugin

    client = load_plugin("acme", "/opt/acme/libacme_pjrt.so").make_client({"boards": 2})
"""

from dovetail._core.runtime.devices.pjrt import PjrtError as PjrtError
from dovetail._core.runtime.devices.pjrt import PjrtPlugin as Plugin
from dovetail._core.runtime.devices.pjrt import load_plugin as load_plugin

__all__ = ["PjrtError", "Plugin", "load_plugin"]
