"""Every rule of every primitive agrees with the others, on samples.

There is one test for each primitive and each check of `dovetail.testing.checks`; its name is
``test_rules_agree[PRIMITIVE-CHECK]``. The backend takes part in all of them, because each compiles
a program and compares its results with the primitive's ``reference``, which is plain NumPy. Only
the tests ``[PRIMITIVE-lowering_agrees]`` run the primitive alone: if one lowering is wrong, exactly
one of these fails. The programs of the others contain derivatives, batched forms and sums.
"""

from __future__ import annotations

from typing import Any

import pytest

from dovetail.testing.backend import BackendUnderTest
from dovetail.testing.checks import CHECKS
from dovetail.testing.levels import ESSENTIAL, in_order
from dovetail.testing.sample import representative, runnable
from dovetail.testing.samples import all_samples, defined_primitives


def _cases() -> list[Any]:
    """Each primitive with each check, the essential primitives first."""
    return [
        pytest.param(
            name,
            check,
            id=f"{name}-{check}",
            marks=() if name in ESSENTIAL else pytest.mark.dovetail_full,
        )
        for name in in_order(sorted(all_samples()))
        for check in sorted(CHECKS)
    ]


@pytest.mark.parametrize(("name", "check"), _cases())
def test_rules_agree(
    name: str,
    check: str,
    dovetail_backend: BackendUnderTest,
    request: pytest.FixtureRequest,
) -> None:
    """One check of one primitive, on the samples that the backend can hold."""
    # pytest's record_property fixture warns if pytest also writes JUnit XML.
    request.node.user_properties += [("primitive", name), ("check", check)]
    capabilities = dovetail_backend.capabilities
    primitive = defined_primitives()[name]
    samples = runnable(primitive, all_samples()[name], capabilities)
    if not any(s.raises is None for s in samples):
        needs = {s.needs for s in all_samples()[name]} - {None, *capabilities}
        what = ", ".join(sorted(filter(None, needs))) or "float64 or complex"
        pytest.skip(
            f"the backend {dovetail_backend.platform!r} does not declare the capability {what}, "
            f"which every sample of {name} needs"
        )
    count = request.config.getoption("--dovetail-samples")
    chosen = samples if count is None else representative(samples, count)
    CHECKS[check](primitive, chosen, capabilities)
