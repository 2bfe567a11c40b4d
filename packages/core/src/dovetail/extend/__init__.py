"""The names promised to authors of plug-ins and APIs: backends, extensions, new primitives.

They change only with `PLUGIN_API`; everything under `dovetail._core` may change with any release.
Each name is loaded, with the module that it is in, when it is first used, so that a backend can
describe itself without loading jaxlib. `dovetail.extend.pjrt` is for backends that bring a PJRT
library, `dovetail.extend.lowering` has building blocks for lowering rules. The other modules are
for authors of functions for users, as `dovetail.numpy` has: docs/write-an-api.md tells of each.
"""

from __future__ import annotations

from dovetail._lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
