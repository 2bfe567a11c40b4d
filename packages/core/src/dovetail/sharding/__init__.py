"""Where the data of arrays lives: devices, meshes of them, and how arrays are divided over them.

Each name is loaded, with the module that it is in, when it is first used.
"""

from dovetail._lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
del lazy_names
