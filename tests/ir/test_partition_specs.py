"""Partition specifications and abstract meshes: values without devices."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from dovetail.sharding import AbstractDevice, AbstractMesh, AxisType, UnreducedKind
from dovetail.sharding import PartitionSpec as P

FREE = P.UNCONSTRAINED

SPECS: tuple[tuple[P, str], ...] = (
    (P(), "P()"),
    (P("x"), "P('x')"),
    (P(None, "x"), "P(None, 'x')"),
    (P(("x", "y"), None), "P(('x', 'y'), None)"),
    (P(FREE, "x"), "P(UNCONSTRAINED, 'x')"),
    (P(1, ("a", 2)), "P(1, ('a', 2))"),
    (P("x", unreduced={"z", "y"}), "P('x', unreduced={'y', 'z'})"),
    (P(reduced={"y"}), "P(reduced={'y'})"),
    (
        P("x", unreduced={"y"}, unreduced_kind=UnreducedKind.max),
        "P('x', unreduced={'y'}, unreduced_kind=UnreducedKind.max)",
    ),
)


@pytest.mark.parametrize(("spec", "text"), SPECS, ids=[text for _, text in SPECS])
def test_specs_are_values(spec: P, text: str) -> None:
    assert repr(spec) == text
    again = pickle.loads(pickle.dumps(spec))
    assert again == spec
    assert hash(again) == hash(spec)
    assert [other for other, _ in SPECS if other == spec] == [spec]
    assert spec.update() == spec
    assert spec != spec.partitions
    assert tuple(spec) == spec.partitions == spec[:]
    assert len(spec) == len(spec.partitions)


def test_one_form_of_each_entry() -> None:
    assert P(("x",)) == P(["x"]) == P("x")
    assert P(()) == P([]) == P(None)
    assert P("x", None) != P("x")
    assert P("x", ("y",)).index("y") == 1
    assert P("x", None, None).count(None) == 2


def test_sums_of_specs() -> None:
    assert P("x") + P(None, "y") == P("x", None, "y")
    assert P("x") + ("y",) == P("x", "y")
    assert ("x",) + P("y") == P("x", "y")
    assert P("x", unreduced={"y"}) + P("z") == P("x", "z", unreduced={"y"})
    assert P("x", "y").update(("z",)) == P("z")
    assert P("x").update(reduced={"y"}) == P("x", reduced={"y"})
    assert P("x", unreduced={"y"}).update(unreduced=set()) == P("x")
    assert P("x", unreduced={"y"}).unreduced_kind is UnreducedKind.sum
    assert P("x").unreduced_kind is None


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: P({"x"}), TypeError, "entry 0 is {'x'}, which is no name"),
        (lambda: P("x", ("y", None)), TypeError, r"entry 1 is \('y', None\), of which None is no"),
        (lambda: P(("x", FREE)), TypeError, "of which UNCONSTRAINED is no name"),
        (lambda: P(P("x")), TypeError, r"entry 0 is P\('x'\), which is no name"),
        (lambda: P("x", unreduced="y"), TypeError, "unreduced must be a set of names"),
        (lambda: P("x", reduced=["y"]), TypeError, "reduced must be a set of names"),
        (lambda: P("x", reduced={None}), ValueError, "holds None"),
        (lambda: P("x", unreduced={"x"}), ValueError, "'x' is both in an entry and in unreduced"),
        (lambda: P(reduced={"x"}, unreduced={"x"}), ValueError, "in unreduced and in reduced"),
        (lambda: P(unreduced_kind="sum"), TypeError, "must be an UnreducedKind"),
        (
            lambda: P(unreduced={"x"}) + P(unreduced={"y"}, unreduced_kind=UnreducedKind.max),
            ValueError,
            "in different ways",
        ),
    ],
)
def test_specs_that_are_none(make: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make()


MESH = AbstractMesh((4, 2), ("x", "y"), (AxisType.Auto, AxisType.Explicit))


def test_abstract_meshes_are_values() -> None:
    assert pickle.loads(pickle.dumps(MESH)) == MESH
    assert hash(MESH.update()) == hash(MESH)
    assert MESH.shape == {"x": 4, "y": 2}
    assert MESH.shape_tuple == (("x", 4), ("y", 2))
    assert (MESH.size, MESH.empty, AbstractMesh((), ()).empty) == (8, False, True)
    assert MESH.abstract_mesh is MESH
    assert (MESH.auto_axes, MESH.explicit_axes, MESH.manual_axes) == (("x",), ("y",), ())
    assert not MESH.are_all_axes_auto
    assert MESH.update_axis_types({"x": AxisType.Manual}).are_all_axes_explicit_or_manual
    assert MESH.update(axis_types=AxisType.Manual).are_all_axes_manual
    assert AbstractMesh((3,), "z").are_all_axes_explicit
    assert MESH.update(axis_sizes=(2, 2), axis_names=("a", "b")).shape == {"a": 2, "b": 2}
    device = AbstractDevice("TPU v5 lite", 1, "tpu")
    known = AbstractMesh((4,), "x", abstract_device=device)
    assert known != AbstractMesh((4,), "x")
    assert known.update(axis_sizes=(2,)).abstract_device == device
    assert "TPU v5 lite" in repr(known)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: AbstractMesh((4, 2), ("x",)), ValueError, "got 1 name for 2 axes"),
        (lambda: AbstractMesh((4, 2), ("x", "x")), ValueError, "'x' stands for two axes"),
        (lambda: AbstractMesh((4,), (None,)), ValueError, "None is no name"),
        (lambda: AbstractMesh((4.0,), "x"), TypeError, "sizes of axes are integers"),
        (lambda: AbstractMesh((0,), "x"), ValueError, "at least one device"),
        (lambda: AbstractMesh((4,), "x", ("auto",)), TypeError, "of the class AxisType"),
        (lambda: AbstractMesh((4,), "x", (AxisType.Auto,) * 2), ValueError, "2 types for 1 axis"),
        (lambda: MESH.update_axis_types({"z": AxisType.Auto}), ValueError, "no axis 'z'"),
    ],
)
def test_abstract_meshes_that_are_none(make: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make()
