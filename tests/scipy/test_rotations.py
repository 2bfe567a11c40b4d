"""Rotations: every form against SciPy's, and the laws that join them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.spatial import transform as reference

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import random
from dovetail.scipy.spatial.transform import Rotation, Slerp

pytestmark = pytest.mark.tables


def _quaternions():
    """Random ones, half turns, small turns and none."""
    rng = np.random.default_rng(1)
    axes = np.concatenate([np.eye(4), -np.eye(4), [[1e-9, 0, 0, 1], [0, 1e-3, 0, -1]]])
    pairs = [
        [x, y, z, w] for x, y, z, w in product((0, 1, -1), repeat=4) if (x, y, z, w) != (0,) * 4
    ]
    many = np.concatenate([rng.normal(size=(40, 4)), axes, pairs])
    return many / np.linalg.norm(many, axis=-1, keepdims=True)


@pytest.mark.parametrize("wide", [False, True])
def test_forms_are_scipys(wide):
    quat = _quaternions()
    tolerance = {"atol": 1e-12 if wide else 1e-5}
    with dt.enable_x64(wide):
        found = Rotation.from_quat(jnp.asarray(3 * quat))
        expected = reference.Rotation.from_quat(3 * quat)
        assert len(found) == len(quat)
        assert found.quat.dtype == ("float64" if wide else "float32")
        for name, given in [
            ("as_quat", {}),
            ("as_quat", {"scalar_first": True}),
            ("as_matrix", {}),
            ("magnitude", {}),
        ]:
            np.testing.assert_allclose(
                getattr(found, name)(**given), getattr(expected, name)(**given), **tolerance
            )
        clear = expected.magnitude() < np.pi - 1e-3  # At a half turn both axes are right.
        for name, given in [("as_rotvec", {}), ("as_rotvec", {"degrees": True}), ("as_mrp", {})]:
            y, z = getattr(found, name)(**given), getattr(expected, name)(**given)
            np.testing.assert_allclose(y[clear], z[clear], rtol=1e-5, **tolerance)
            np.testing.assert_allclose(np.abs(y), np.abs(z), rtol=1e-5, atol=1e-4)
        if wide:
            np.testing.assert_allclose(
                found.as_quat(canonical=True), expected.as_quat(canonical=True), **tolerance
            )
        w = np.random.default_rng(2).uniform(1, 2, len(quat))
        assert (
            float((found.mean(w) * Rotation(expected.mean(w).inv().as_quat())).magnitude()) < 1e-3
        )
        v = np.random.default_rng(3).normal(size=(len(quat), 3))
        for inverse in (False, True):
            np.testing.assert_allclose(
                found.apply(v, inverse), expected.apply(v, inverse), **tolerance
            )
            np.testing.assert_allclose(
                found[5].apply(v, inverse), expected[5].apply(v, inverse), **tolerance
            )
        np.testing.assert_allclose(
            (found * found[::-1].inv()).as_matrix(),
            (expected * expected[::-1].inv()).as_matrix(),
            **tolerance,
        )
        # And back.
        for name in ("matrix", "rotvec", "mrp"):
            again = getattr(Rotation, f"from_{name}")(getattr(found, f"as_{name}")())
            assert float(jnp.max((again * found.inv()).magnitude())) < (1e-7 if wide else 5e-3)


_SEQUENCES = ["xyz", "ZYX", "zxz", "YXY"]


@pytest.mark.parametrize("seq", _SEQUENCES)
def test_euler_angles_are_scipys(seq):
    with dt.enable_x64(True):
        quat = _quaternions()
        angles = np.random.default_rng(4).uniform(-400, 400, (30, 3))
        for degrees in (False, True):
            np.testing.assert_allclose(
                Rotation.from_euler(seq, angles, degrees).as_matrix(),
                reference.Rotation.from_euler(seq, angles, degrees).as_matrix(),
                atol=1e-11,
            )
        found = Rotation.from_quat(jnp.asarray(quat)).as_euler(seq, degrees=True)
        assert (np.abs(found) <= 180 + 1e-9).all()
        again = reference.Rotation.from_euler(seq, np.asarray(found), degrees=True)
        apart = (again * reference.Rotation.from_quat(quat).inv()).magnitude()
        np.testing.assert_allclose(apart, 0, atol=1e-6)
        with pytest.warns(UserWarning, match="Gimbal"):
            expected = reference.Rotation.from_quat(quat).as_euler(seq, degrees=True)
        turned = np.abs(found - expected)
        turned = np.minimum(turned, 360 - turned)
        assert (turned.max(-1) < 1e-5).mean() > 0.9  # At a cut, -180 and 180 are one angle.
        # Where angles are not determined, the third is none.
        lock = np.isclose(np.abs(found[:, 1]), 90) & (seq[0] != seq[2])
        lock |= np.isclose(found[:, 1] % 180, 0) & (seq[0] == seq[2])
        assert lock.any()
        assert not np.asarray(found[:, 2])[lock].any()


def test_single_rotations_and_arrays():
    r = Rotation.from_euler("xy", np.array([[10.0, 20.0], [30.0, 40.0]], "float32"), degrees=True)
    assert (r.single, r[0].single, len(r), len(r[:1])) == (False, True, 2, 1)
    assert bool(r[0])
    assert r[np.array([1, 0])].as_quat().tolist() == r[::-1].as_quat().tolist()
    assert Rotation.concatenate([r[0], r]).as_quat().tolist() == r[[0, 0, 1]].as_quat().tolist()
    assert Rotation.identity().as_quat().tolist() == [0, 0, 0, 1]
    assert Rotation.identity(2).as_matrix().tolist() == [np.eye(3).tolist()] * 2
    assert r[0].mean().single
    one = Rotation.from_euler("x", 0.5)
    many = Rotation.from_euler("x", jnp.array([0.5, 0.5]))
    assert (one.as_quat() == many.as_quat()).all()
    assert (one.quat.shape, many.quat.shape) == ((4,), (2, 4))
    assert np.isnan(Rotation.from_quat(np.zeros(4, "float32")).quat).all()
    assert Rotation.from_rotvec(np.array([4, 0, 0])).quat.dtype == "float32"
    assert Rotation.from_quat(jnp.ones(4, "float16")).as_matrix().dtype == "float16"
    assert dt.tree.leaves(r)[0] is r.quat


def test_random_rotations_are_uniform():
    r = Rotation.random(random.key(0), 4000)
    np.testing.assert_allclose(jnp.linalg.norm(r.quat, axis=-1), 1, rtol=1e-5)
    # Every point goes to each with the same probability: the mean of a matrix and its square.
    np.testing.assert_allclose(jnp.mean(r.as_matrix(), 0), 0, atol=0.05)
    np.testing.assert_allclose(jnp.mean(r.as_matrix() ** 2, 0), 1 / 3, atol=0.03)
    assert Rotation.random(random.key(1)).quat.shape == (4,)


def test_derivatives_are_finite_and_right():
    def turned(v):
        return Rotation.from_rotvec(v).apply(jnp.array([1.0, 2.0, 3.0]))

    with dt.enable_x64(True):
        # The derivative at 0 is the product with the vector.
        x, y, z = 1.0, 2.0, 3.0
        cross = np.array([[0, z, -y], [-z, 0, x], [y, -x, 0]])
        np.testing.assert_allclose(dt.jacrev(turned)(jnp.zeros(3)), cross, atol=1e-12)
        for size in (1e-3, 3.0):
            v = size * np.array([0.6, 0.0, -0.8])
            around = [(turned(v + h) - turned(v - h)) / 2e-6 for h in 1e-6 * np.eye(3)]
            np.testing.assert_allclose(dt.jacfwd(turned)(v), np.stack(around, 1), atol=1e-8)
            back = dt.jacrev(lambda v: Rotation.from_rotvec(v).as_rotvec())(v)
            np.testing.assert_allclose(back, np.eye(3), atol=1e-8)
            through = dt.jacrev(
                lambda v: Rotation.from_matrix(Rotation.from_rotvec(v).as_matrix()).as_rotvec()
            )(v)
            np.testing.assert_allclose(through, np.eye(3), atol=1e-7)
        quat = jnp.asarray(_quaternions()[:5])
        alone = [Rotation.from_quat(q).as_euler("xyz") for q in quat]
        batch = dt.jit(dt.vmap(lambda q: Rotation.from_quat(q).as_euler("xyz")))(quat)
        np.testing.assert_allclose(batch, np.stack(alone), atol=1e-14)


def test_interpolation_is_scipys():
    with dt.enable_x64(True):
        times, quat = np.array([0.0, 0.5, 2.0, 3.0]), _quaternions()[:4]
        at = np.array([0.0, 0.2, 0.5, 1.0, 2.5, 3.0])
        expected = reference.Slerp(times, reference.Rotation.from_quat(quat))(at)
        spline = Slerp.init(times, Rotation.from_quat(quat))
        found = spline(at)
        np.testing.assert_allclose(found.as_matrix(), expected.as_matrix(), atol=1e-12)
        assert spline(0.2).single
        ends = spline(np.array([-1.0, 7.0])).as_matrix()
        np.testing.assert_allclose(ends, found[np.array([0, 5])].as_matrix(), atol=1e-12)
        compiled = dt.jit(lambda q, t: Slerp.init(times, Rotation.from_quat(q))(t).as_quat())
        np.testing.assert_allclose(compiled(quat, at), found.as_quat(), atol=1e-14)


def test_mistakes_are_refused():
    r = Rotation.identity(2)
    for error, mistake in [
        (ValueError, lambda: Rotation.from_quat(np.ones(3))),
        (ValueError, lambda: Rotation.from_matrix(np.eye(2))),
        (TypeError, lambda: Rotation.from_rotvec(np.ones(3) * 1j)),
        (ValueError, lambda: Rotation.from_euler("q", 1.0)),
        (ValueError, lambda: Rotation.from_euler("xY", np.ones(2))),
        (ValueError, lambda: Rotation.from_euler("xx", np.ones(2))),
        (ValueError, lambda: Rotation.from_euler("xyzx", np.ones(4))),
        (ValueError, lambda: Rotation.from_euler("xy", 1.0)),
        (ValueError, lambda: r.as_euler("xy")),
        (TypeError, lambda: len(r[0])),
        (TypeError, lambda: r[0][0]),
        (TypeError, lambda: r * 3),
        (ValueError, lambda: r.apply(np.ones(2))),
        (ValueError, lambda: r.apply(np.ones((3, 3)))),
        (ValueError, lambda: r.mean(np.ones(3))),
        (ValueError, lambda: Rotation.concatenate([])),
        (TypeError, lambda: Rotation.concatenate([np.ones(4)])),
        (TypeError, lambda: Rotation.concatenate(3)),
        (ValueError, lambda: Slerp.init(np.ones(1), r)),
        (ValueError, lambda: Slerp.init(np.array([1.0, 0.0]), r)),
        (ValueError, lambda: Slerp.init(np.ones(1), r[0])),
        (TypeError, lambda: Slerp.init(np.ones(1), 3)),
        (ValueError, lambda: Slerp.init(np.arange(2.0), r)(np.ones((2, 2)))),
    ]:
        with pytest.raises(error):
            mistake()
