"""Generated tests of primitives: sample arguments, and checks that all rules agree on them.

The checks need no test framework. ``pytest --pyargs dovetail.testing.suites`` drives them on a
platform of your choice, see `dovetail.testing.plugin`.
"""

from dovetail.extend import lazy_names

__getattr__, __dir__ = lazy_names(__name__, for_users=False)
del lazy_names
