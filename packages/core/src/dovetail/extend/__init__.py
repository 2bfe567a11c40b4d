"""The stable names for authors of plug-ins and APIs: backends, extensions, new primitives.

They change only with `PLUGIN_API`; everything under `dovetail._core` may change in any release.
Each name is loaded on first use, together with its module, so that a backend can describe itself
without loading jaxlib. `dovetail.extend.pjrt` is for backends on a PJRT library;
`dovetail.extend.lowering` has building blocks for lowering rules. The other modules are for authors
of user-facing APIs such as `dovetail.numpy`: docs/write-an-api.md describes each.
"""

from dovetail._lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__, for_users=False)
