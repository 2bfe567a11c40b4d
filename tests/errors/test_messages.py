"""Messages of common mistakes: the text, the user's line, and a way out.

Each mistake is a function that raises, in which the wrong line is marked. `messages.txt` has what
they raise. After a deliberate change write it anew with ``python tests/errors/test_messages.py``,
and read what has changed.
"""

from __future__ import annotations

import inspect
import math
import re
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax, random

Mistake = Callable[[], Any]

MISTAKES: dict[str, Mistake] = {}
MESSAGES = Path(__file__).with_name("messages.txt")


def mistake(function: Mistake) -> Mistake:
    """Add a function to the table."""
    MISTAKES[function.__name__] = function
    return function


# Shapes and dtypes


@mistake
def shapes_that_do_not_broadcast() -> Any:
    return jnp.ones((2, 3)) + jnp.ones((2, 4))  # wrong


@mistake
def shapes_inside_a_jitted_function() -> Any:
    @dt.jit
    def predict(params: Any, x: Any) -> Any:
        return x @ params["w"] + params["b"]  # wrong

    return predict({"w": jnp.ones((3, 4)), "b": jnp.ones(5)}, jnp.ones((2, 3)))


@mistake
def sizes_that_do_not_contract() -> Any:
    return jnp.dot(jnp.ones((2, 3)), jnp.ones((4, 2)))  # wrong


@mistake
def dtypes_that_lax_does_not_promote() -> Any:
    return lax.add(jnp.ones(3), jnp.arange(3))  # wrong


@mistake
def a_size_that_does_not_fit() -> Any:
    return jnp.ones((2, 3)).reshape(4, 2)  # wrong


@mistake
def arrays_that_cannot_be_joined() -> Any:
    return jnp.concatenate([jnp.ones((2, 3)), jnp.ones((2, 4))])  # wrong


@mistake
def arrays_that_cannot_be_stacked() -> Any:
    return jnp.stack([jnp.ones(3), jnp.ones(4)])  # wrong


@mistake
def an_axis_that_is_not_there() -> Any:
    return jnp.sum(jnp.ones((2, 3)), axis=2)  # wrong


@mistake
def a_list_for_an_array() -> Any:
    return jnp.sin([1.0, 2.0])  # wrong


@mistake
def text_in_an_array() -> Any:
    return jnp.asarray(["one", "two"])  # wrong


# Indices and updates


@mistake
def assignment_to_an_element() -> Any:
    x = jnp.zeros(3)
    x[0] = 1.0  # wrong
    return x


@mistake
def an_index_that_is_no_integer() -> Any:
    return jnp.arange(3)[1.0]  # wrong


@mistake
def too_many_indices() -> Any:
    return jnp.ones((2, 3))[0, 0, 0]  # wrong


@mistake
def an_update_of_another_shape() -> Any:
    return jnp.zeros((2, 3)).at[0].set(jnp.ones(4))  # wrong


@mistake
def a_mask_in_a_jitted_function() -> Any:
    @dt.jit
    def positive(x: Any) -> Any:
        return x[x > 0]  # wrong

    return positive(jnp.arange(3.0))


# Values that are not known while tracing


@mistake
def a_branch_on_a_tracer() -> Any:
    @dt.jit
    def rectified(x: Any) -> Any:
        if x > 0:  # wrong
            return x
        return 0.0

    return rectified(1.0)


@mistake
def a_loop_on_a_tracer() -> Any:
    @dt.jit
    def halved(x: Any) -> Any:
        while x > 1.0:  # wrong
            x = x / 2
        return x

    return halved(8.0)


@mistake
def a_range_of_a_tracer() -> Any:
    @dt.jit
    def power(x: Any, n: Any) -> Any:
        result = 1.0
        for _ in range(n):  # wrong
            result = result * x
        return result

    return power(2.0, 3)


@mistake
def a_tracer_as_a_python_number() -> Any:
    return dt.jit(lambda x: float(x) + 1.0)(2.0)  # wrong


@mistake
def a_function_of_python_in_a_gradient() -> Any:
    return dt.grad(lambda x: math.sin(x) * x)(2.0)  # wrong


@mistake
def a_function_of_numpy_in_a_gradient() -> Any:
    return dt.grad(lambda x: np.sin(x) * x)(2.0)  # wrong


@mistake
def a_tracer_in_numpy() -> Any:
    return dt.jit(lambda x: np.sin(x))(jnp.ones(3))  # wrong


@mistake
def a_shape_that_is_traced() -> Any:
    return dt.jit(lambda n: jnp.zeros(n))(3)  # wrong


@mistake
def a_range_that_is_traced() -> Any:
    return dt.jit(lambda n: jnp.arange(n))(3)  # wrong


@mistake
def a_truth_value_of_several_elements() -> Any:
    return bool(jnp.ones(3) > 0)  # wrong


# Tracers that leave their function


@mistake
def a_tracer_in_a_global_list() -> Any:
    kept: list[Any] = []

    @dt.jit
    def remembers(x: Any) -> Any:
        kept.append(x * 2)
        return x

    remembers(1.0)
    return kept[0] + 1.0  # wrong


@mistake
def a_tracer_on_an_object() -> Any:
    class Model:
        state: Any = None

        def update(self, x: Any) -> Any:
            self.state = jnp.tanh(x)
            return x

    model = Model()
    dt.grad(model.update)(1.0)
    return jnp.sin(model.state)  # wrong


@mistake
def a_tracer_of_another_trace() -> Any:
    kept: list[Any] = []
    dt.vmap(lambda x: kept.append(x))(jnp.arange(3.0))
    return dt.jit(lambda y: y * kept[0])(1.0)  # wrong


# Control flow


@mistake
def a_carry_that_changes_its_dtype() -> Any:
    def step(carry: Any, x: Any) -> Any:
        return {"count": carry["count"] + 0.5}, x  # wrong

    return lax.scan(step, {"count": jnp.int32(0)}, jnp.arange(3))


@mistake
def a_carry_that_changes_its_shape() -> Any:
    def step(carry: Any, x: Any) -> Any:
        return jnp.concatenate([carry, x[None]]), None  # wrong

    return lax.scan(step, jnp.zeros(2), jnp.arange(3.0))


@mistake
def a_carry_that_changes_its_structure() -> Any:
    def step(carry: Any, x: Any) -> Any:
        return (carry[0] + x, carry[1], x), None

    return lax.scan(step, (0.0, 1.0), jnp.arange(3.0))  # wrong


@mistake
def a_fori_loop_that_changes_a_dtype() -> Any:
    def body(i: Any, state: Any) -> Any:
        return {"sum": state["sum"] + i, "n": (state["n"][0] / 2,)}  # wrong

    return lax.fori_loop(0, 3, body, {"sum": 0.0, "n": (jnp.int32(8),)})


@mistake
def a_fori_loop_of_late_bounds_that_returns_more() -> Any:
    def body(i: Any, state: Any) -> Any:
        return state, i

    return dt.jit(lambda n: lax.fori_loop(0, n, body, 1.0))(3)  # wrong


@mistake
def a_loop_that_swaps_what_it_carries() -> Any:
    def step(carry: Any, x: Any) -> Any:
        return (carry[1], carry[0]), x

    return lax.scan(step, (jnp.ones(2), jnp.ones(3)), jnp.ones(4))  # wrong


@mistake
def a_map_of_a_function_that_returns_a_string() -> Any:
    return lax.map(lambda x: {"value": x, "name": "x"}, jnp.ones(3))  # wrong


@mistake
def a_switch_of_two_shapes() -> Any:
    rows = lambda x: x.sum(axis=1)
    columns = lambda x: x.sum(axis=0)
    return lax.switch(1, [rows, columns, rows], jnp.ones((2, 3)))  # wrong


@mistake
def a_scan_of_traced_length() -> Any:
    step = lambda c, _: (c * 2, None)
    return dt.jit(lambda n: lax.scan(step, 1.0, None, n))(3)  # wrong


@mistake
def a_body_that_returns_no_pair() -> Any:
    return lax.scan(lambda carry, x: carry + x, 0.0, jnp.arange(3.0))  # wrong


@mistake
def elements_of_several_lengths() -> Any:
    return lax.scan(lambda c, x: (c, x), 0, {"a": jnp.ones(3), "b": jnp.ones(4)})  # wrong


@mistake
def a_loop_that_changes_its_value() -> Any:
    return lax.while_loop(lambda n: n < 3, lambda n: n + jnp.float32(1), jnp.int32(0))  # wrong


@mistake
def a_condition_of_several_elements() -> Any:
    return lax.while_loop(lambda x: x < 3, lambda x: x + 1, jnp.zeros(3))  # wrong


@mistake
def a_gradient_through_a_while_loop() -> Any:
    def count(x: Any) -> Any:
        return lax.while_loop(lambda y: y < 10.0, lambda y: y * x, x)

    return dt.grad(count)(2.0)  # wrong


@mistake
def branches_of_two_structures() -> Any:
    return lax.cond(True, lambda x: (x, x), lambda x: x, 1.0)  # wrong


@mistake
def branches_of_two_dtypes() -> Any:
    return lax.cond(True, lambda x: x, lambda x: x > 0, jnp.float32(1))  # wrong


@mistake
def a_predicate_of_several_elements() -> Any:
    return lax.cond(jnp.ones(3) > 0, jnp.sin, jnp.cos, 1.0)  # wrong


# vmap


@mistake
def axes_of_another_number() -> Any:
    return dt.vmap(lambda x, y: x + y, in_axes=(0, 0, None))(jnp.ones(3), jnp.ones(3))  # wrong


@mistake
def sizes_that_differ() -> Any:
    return dt.vmap(lambda x, y: x + y)(jnp.ones(3), {"a": jnp.ones(4)})  # wrong


@mistake
def an_axis_beyond_the_last() -> Any:
    return dt.vmap(jnp.sin, in_axes=1)(jnp.ones(3))  # wrong


@mistake
def out_axes_of_another_structure() -> Any:
    return dt.vmap(lambda x: {"a": x}, out_axes={"b": 0})(jnp.ones(3))  # wrong


@mistake
def a_mapped_result_without_axis() -> Any:
    return dt.vmap(lambda x: x, out_axes=None)(jnp.ones(3))  # wrong


@mistake
def a_scalar_to_map_over() -> Any:
    return dt.vmap(jnp.sin)(1.0)  # wrong


# Derivatives


@mistake
def a_gradient_of_an_array() -> Any:
    return dt.grad(jnp.sin)(jnp.ones(3))  # wrong


@mistake
def a_gradient_with_respect_to_an_integer() -> Any:
    return dt.grad(lambda n: n * 2.0)(3)  # wrong


@mistake
def a_gradient_of_an_integer() -> Any:
    return dt.grad(lambda x: jnp.round(x).astype(int))(1.0)  # wrong


@mistake
def a_gradient_of_a_complex_function() -> Any:
    return dt.grad(lambda z: z * z)(1.0 + 2.0j)  # wrong


@mistake
def an_argument_that_is_not_there() -> Any:
    return dt.grad(lambda x: x, argnums=1)(1.0)  # wrong


@mistake
def auxiliary_data_that_is_missing() -> Any:
    return dt.grad(lambda x: x * 2, has_aux=True)(1.0)  # wrong


@mistake
def a_tangent_of_another_dtype() -> Any:
    return dt.jvp(jnp.sin, (jnp.ones(3),), (jnp.arange(3),))  # wrong


@mistake
def a_tangent_of_another_shape() -> Any:
    return dt.jvp(jnp.sin, (jnp.ones(3),), (jnp.ones(4),))  # wrong


@mistake
def a_cotangent_of_another_structure() -> Any:
    _, pull_back = dt.vjp(lambda x: {"a": x}, 1.0)
    return pull_back(1.0)  # wrong


# jit


@mistake
def an_argument_that_is_no_array() -> Any:
    return dt.jit(lambda options: options["rate"])({"rate": 0.1, "name": "adam"})  # wrong


@mistake
def a_result_that_is_no_array() -> Any:
    return dt.jit(lambda x: {"x": x, "name": "adam"})(1.0)  # wrong


@mistake
def a_static_argument_without_hash() -> Any:
    return dt.jit(lambda x, sizes: x, static_argnums=1)(1.0, [1, 2])  # wrong


@mistake
def a_static_argument_that_is_not_there() -> Any:
    return dt.jit(lambda x: x, static_argnames="axis")  # wrong


@mistake
def a_donated_array_that_is_used() -> Any:
    x = jnp.ones(3)
    dt.jit(lambda x: x + 1, donate_argnums=0)(x)
    return x + 1  # wrong


@mistake
def a_step_that_is_compiled_again() -> Any:
    step = dt.jit(lambda batch: batch.mean())
    step(jnp.ones(64))
    with dt.no_recompiles():
        return step(jnp.ones(17))  # wrong


@mistake
def an_argument_static_and_donated() -> Any:
    return dt.jit(lambda x: x, static_argnums=0, donate_argnums=0)  # wrong


# Random numbers


@mistake
def a_seed_for_a_key() -> Any:
    return random.normal(0, (3,))  # wrong


@mistake
def arithmetic_with_a_key() -> Any:
    return random.key(0) + 1  # wrong


# Rules of one's own, callbacks, references


@mistake
def a_rule_that_is_not_defined() -> Any:
    @dt.custom_vjp
    def clipped(x: Any) -> Any:
        return x

    return dt.grad(clipped)(1.0)  # wrong


@mistake
def a_tangent_of_another_type() -> Any:
    @dt.custom_jvp
    def halved(x: Any) -> Any:
        return x / 2.0

    halved.defjvp(lambda primals, tangents: (halved(*primals), jnp.ones(3)))
    return dt.jvp(halved, (1.0,), (1.0,))  # wrong


@mistake
def a_forward_rule_without_residuals() -> Any:
    @dt.custom_vjp
    def halved(x: Any) -> Any:
        return x / 2.0

    halved.defvjp(lambda x: x / 2.0, lambda residuals, ct: (ct,))
    return dt.grad(halved)(1.0)  # wrong


@mistake
def too_few_cotangents() -> Any:
    @dt.custom_vjp
    def product(x: Any, y: Any) -> Any:
        return x * y

    product.defvjp(lambda x, y: (x * y, (x, y)), lambda residuals, ct: (ct * residuals[1],))
    return dt.grad(product)(1.0, 2.0)  # wrong


@mistake
def a_cotangent_of_another_shape() -> Any:
    @dt.custom_vjp
    def total(x: Any) -> Any:
        return x.sum()

    total.defvjp(lambda x: (x.sum(), None), lambda _, ct: (ct,))
    return dt.grad(total)(jnp.ones(3))  # wrong


@mistake
def forward_mode_of_a_backward_rule() -> Any:
    @dt.custom_vjp
    def halved(x: Any) -> Any:
        return x / 2.0

    halved.defvjp(lambda x: (x / 2.0, None), lambda _, ct: (ct / 2.0,))
    return dt.jacfwd(halved)(1.0)  # wrong


@mistake
def a_policy_that_is_none() -> Any:
    return dt.checkpoint(jnp.sin, policy="nothing_saveable")(1.0)  # wrong


@mistake
def a_callback_that_returns_another_shape() -> Any:
    shape = dt.ShapeDtypeStruct((3,), np.float32)
    return dt.pure_callback(lambda x: np.ones(4, np.float32), shape, 1.0)  # wrong


@mistake
def a_callback_that_is_differentiated() -> Any:
    shape = dt.ShapeDtypeStruct((), np.float32)
    return dt.grad(lambda x: dt.pure_callback(np.sin, shape, x))(1.0)  # wrong


@mistake
def a_reference_that_is_returned() -> Any:
    return dt.jit(lambda total: total)(dt.new_ref(0.0))  # wrong


@mistake
def a_reference_given_twice() -> Any:
    total = dt.new_ref(0.0)
    return dt.jit(lambda first, second: first[...] + second[...])(total, total)  # wrong


@mistake
def arithmetic_with_a_reference() -> Any:
    return jnp.sin(dt.new_ref(0.0))  # wrong


@mistake
def a_reference_that_learns_what_varies() -> Any:
    seen = dt.new_ref(0.0)

    def loss(x: Any) -> Any:
        y = jnp.sin(x)
        seen[...] = y  # wrong
        return y

    return dt.grad(loss)(1.0)


@mistake
def a_reference_that_all_elements_write_to() -> Any:
    seen = dt.new_ref(0.0)

    def write(x: Any) -> Any:
        seen[...] += x  # wrong
        return x

    return dt.vmap(write)(jnp.ones(3))


@mistake
def a_reference_of_an_ended_function() -> Any:
    kept = []

    @dt.jit
    def step(x: Any) -> Any:
        kept.append(dt.new_ref(x))
        return x

    step(1.0)
    return kept[0][...]  # wrong


@mistake
def derivatives_that_where_hides() -> Any:
    def root(x: Any) -> Any:
        return jnp.where(x > 0, jnp.sqrt(x), 0.0)  # wrong

    with dt.debug_nans(True):
        return dt.jit(dt.grad(root))(0.0)


@mistake
def logarithms_of_what_a_loop_makes_negative() -> Any:
    def step(x: Any, _: Any) -> Any:
        return jnp.log(x), None  # wrong

    with dt.debug_nans(True):
        return lax.scan(step, 2.0, None, length=9)


# Options, meshes, rules and loops


@mistake
def an_option_that_is_not_there() -> Any:
    dt.config.update("log_compile", True)  # wrong


@mistake
def a_mesh_with_too_many_names() -> Any:
    return dt.make_mesh((4,), ("data", "model"))  # wrong


@mistake
def a_sharding_of_a_name() -> Any:
    return dt.NamedSharding(dt.make_mesh((4,), ("data",)), "data")  # type: ignore[arg-type]  # wrong


@mistake
def a_parameter_that_is_not_there() -> Any:
    return dt.custom_jvp(lambda x, n: x**n, nondiff_argnums=(2,))  # wrong


@mistake
def checkpoints_without_a_bound() -> Any:
    return lax.while_loop(lambda x: x < 9, lambda x: 2 * x, 1.0, checkpoints=4)  # wrong


#: Words with which a message says what to do.
ADVICE = re.compile(
    r"\b(use|write|pass|give|convert|choose|insert|make|mark|return|reduce|slice|leave|combine|"
    r"index|may be|must be|must have|must return|must contain|keep|pad|install|derive|register|"
    r"define|read|did you mean)\b",
    re.IGNORECASE,
)


def raised(function: Mistake) -> BaseException:
    """What a mistake raises."""
    try:
        function()
    except Exception as error:
        return error
    raise AssertionError(f"{function.__name__} raises nothing")


def text_of(error: BaseException) -> str:
    """The message and its notes, without what differs between machines and versions of the file."""
    text = "\n".join([str(error), *getattr(error, "__notes__", ())])
    text = re.sub(r"[^\s()]*test_messages\.py:\d+", "test_messages.py:LINE", text)
    return f"{type(error).__name__}: {text.rstrip()}"


def wrong_lines(function: Mistake) -> list[int]:
    """The numbers of the lines of a function that are marked."""
    lines, start = inspect.getsourcelines(function)
    return [start + i for i, line in enumerate(lines) if line.rstrip().endswith("# wrong")]


def read() -> dict[str, str]:
    """The messages on file, by name."""
    parts = re.split(r"^## (\w+)\n", MESSAGES.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {name: text.strip() for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def write() -> None:
    """Replace the messages on file by those of now."""
    parts = [f"## {name}\n\n{text_of(raised(function))}\n" for name, function in MISTAKES.items()]
    MESSAGES.write_text("\n".join(parts), encoding="utf-8")


@pytest.mark.parametrize("name", MISTAKES)
def test_message(name: str) -> None:
    error = raised(MISTAKES[name])
    assert text_of(error) == read()[name]
    assert ADVICE.search(str(error)), "the message says nothing to do"
    (line,) = wrong_lines(MISTAKES[name])
    shown = "".join(traceback.format_exception(error))
    assert re.search(rf'test_messages\.py(:|", line ){line}\b', shown), f"line {line} is not shown"


def test_every_message_belongs_to_a_mistake() -> None:
    assert list(read()) == list(MISTAKES)


if __name__ == "__main__":
    write()
