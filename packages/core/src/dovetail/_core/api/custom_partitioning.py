"""`custom_partitioning`: functions that say themselves how they are divided over devices."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Generic, ParamSpec, TypeVar, cast

from dovetail._core.api.inspection import ShapeDtypeStruct
from dovetail._core.base import config, dtypes, pytree
from dovetail._core.base.errors import DTypeError
from dovetail._core.base.tracebacks import boundary, bounded
from dovetail._core.base.wrapping import update_wrapper
from dovetail._core.basis.operands import as_operand
from dovetail._core.ir.avals import aval_of
from dovetail._core.ir.jaxpr import ClosedJaxpr, DebugInfo
from dovetail._core.ir.partition_spec import PartitionSpec
from dovetail._core.ops.parallel.custom_partitioning import Division, custom_partitioning_p
from dovetail._core.ops.parallel.sharding_rules import ArrayMapping, SdyShardingRule, parsed_rule
from dovetail._core.runtime.devices.mesh import Mesh
from dovetail._core.runtime.devices.named_sharding import NamedSharding
from dovetail._core.trace.tracer import Tracer
from dovetail._core.transform.derived import hoist_consts
from dovetail._core.transform.flattening import (
    FlatFunction,
    check_array_leaves,
    check_callable,
    leaf_names,
    location_of,
    name_of,
)
from dovetail._core.transform.stage import stage

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])


@bounded
class custom_partitioning(Generic[P, R]):
    """A function that says itself how it is divided over devices.

    In programs over several devices the compiler asks the function: it knows by a sharding rule
    along which dimensions operands and results are divided, and by `def_partition` what each device
    computes. What is raised while it asks is raised as it is. Shardings are always `NamedSharding`;
    where the compiler's is none over the axes of the mesh, or divides a dimension unevenly, the
    dimensions are whole. On one device, under `vmap`, for derivatives and inside of `shard_map` it
    is the function itself; give it a `custom_vjp` outside to have derivatives that are divided.

    Args:
        fun: the function, of trees of arrays.
        static_argnums: numbers of arguments that are not arrays. They have to be hashable, and are
            passed to what is given to `def_partition` before all else.

    Raises:
        TypeError: it is not a function, or the numbers are not integers.
        AttributeError: when called: `def_partition` was not called.

    Shardings are always `NamedSharding`. Where the compiler's is none over the axes of the mesh, or
    divides a dimension unevenly, dimensions count as whole. What is raised while the compiler asks
    is raised as it is, with a note that names the function.

    Differs:
        It has derivatives and a batching rule, those of the function.

        >>> from dovetail.experimental.custom_partitioning import custom_partitioning
        >>> square = custom_partitioning(lambda x: x * x)
        >>> _ = square.def_partition(
        ...     lambda mesh, args, out: (mesh, square.fun, out.sharding, (args[0].sharding,)),
        ...     sharding_rule="... -> ...",
        ... )
        >>> print(dt.grad(square)(3.0), dt.vmap(square)(jnp.arange(3)))
        6.0 [0 1 4]

        A function of `sharding_rule` gets a `ShapeDtypeStruct` for each array, and shardings are
        always decoded.

        >>> from dovetail.experimental.custom_partitioning import custom_partitioning
        >>> square = custom_partitioning(lambda x: x * x)
        >>> _ = square.def_partition(lambda *_: None, decode_shardings=False)
        Traceback (most recent call last):
            ...
        NotImplementedError: def_partition of <lambda> (...): shardings are decoded here, into
        NamedShardings over the mesh; leave out decode_shardings=False

    Example:
        >>> from dovetail.experimental.custom_partitioning import custom_partitioning
        >>> from dovetail.sharding import NamedSharding, PartitionSpec as P
        >>> @custom_partitioning
        ... def softmax(x):  # of rows
        ...     y = jnp.exp(x - x.max(-1, keepdims=True))
        ...     return y / y.sum(-1, keepdims=True)
        >>> def partition(mesh, arg_shapes, result_shape):
        ...     rows = NamedSharding(mesh, P(result_shape.sharding.spec[0], None))
        ...     return mesh, softmax.fun, rows, (rows,)
        >>> _ = softmax.def_partition(
        ...     partition, sharding_rule="i j -> i j", need_replication_factors=("j",)
        ... )
        >>> print(softmax(jnp.zeros((2, 4))))
        [[0.25 0.25 0.25 0.25]
         [0.25 0.25 0.25 0.25]]
    """

    def __init__(self, fun: Callable[P, R], static_argnums: int | Sequence[int] = ()) -> None:
        check_callable(fun, "custom_partitioning")
        self.fun = fun
        """The function."""
        try:
            signature: inspect.Signature | None = inspect.signature(fun)
        except (TypeError, ValueError):
            signature = None
        self._signature = signature
        self.static_argnums = _numbers(static_argnums, fun, signature)
        """The numbers of arguments that are not arrays."""
        self._partition: Callable[..., Any] | None = None
        self._rule: SdyShardingRule | Callable[..., Any] | None = None
        self._staged: dict[Any, tuple[ClosedJaxpr, list[Any], Any, _Partition]] = {}
        update_wrapper(self, fun)

    def def_partition(
        self,
        partition: F,
        infer_sharding_from_operands: Callable[..., Any] | None = None,
        propagate_user_sharding: Callable[..., Any] | None = None,
        decode_shardings: bool = True,
        sharding_rule: str | SdyShardingRule | Callable[..., Any] | None = None,
        *,
        reduction_factors: tuple[str, ...] = (),
        need_replication_factors: tuple[str, ...] = (),
        permutation_factors: tuple[str, ...] = (),
        **factor_sizes: int,
    ) -> F:
        """Say how the function is divided.

        Args:
            partition: called as ``partition(*static, mesh, arg_shapes, result_shape)``, where
                the last two are the tuple of arguments and the result with a `ShapeDtypeStruct` for
                each array, whose sharding the compiler has chosen. It returns ``(mesh, function,
                result_shardings, arg_shardings)``: what each device computes from its parts of the
                arguments, which may be a collective operation over the axes of the mesh, and the
                shardings for which that is right.
            infer_sharding_from_operands: a rule of another compiler pass; `sharding_rule` says it.
            propagate_user_sharding: the same.
            decode_shardings: True.
            sharding_rule: along which dimensions the function can be divided: a text like
                ``"i j, j k -> i k"``, where ``...`` stands for leading dimensions and ``(a b)`` for
                a dimension that is a product; a `SdyShardingRule`; or a function that returns one
                of them, called as ``sharding_rule(*static, mesh, operands, results)`` with a list
                of a `ShapeDtypeStruct` for each array. Without it shardings do not spread from
                operands to results or back.
            reduction_factors: for a text, the factors that the function sums over.
            need_replication_factors: for a text, the factors along which arrays have to be whole.
            permutation_factors: for a text, the factors along which devices exchange parts.
            factor_sizes: for a text, sizes of factors that are never a whole dimension.

        Returns:
            `partition`, so that it can be a decorator.

        Raises:
            TypeError: an argument is of another type.
            ValueError: the text is not a rule, or factors do not fit it.
            NotImplementedError: there are functions about shardings and no rule, or shardings
                should not be decoded.
        """
        check_callable(partition, "def_partition")
        keywords: dict[str, Any] = {
            name: value
            for name, value in (
                ("reduction_factors", reduction_factors),
                ("need_replication_factors", need_replication_factors),
                ("permutation_factors", permutation_factors),
            )
            if value != ()
        } | factor_sizes
        if isinstance(sharding_rule, str):
            sharding_rule = parsed_rule(sharding_rule, **keywords)
        elif keywords:
            raise ValueError(
                f"def_partition of {_described(self.fun)}: {', '.join(keywords)} go with a "
                "sharding_rule that is a text; give them to SdyShardingRule"
            )
        elif not (
            sharding_rule is None
            or isinstance(sharding_rule, SdyShardingRule)
            or callable(sharding_rule)
        ):
            raise TypeError(
                f"def_partition of {_described(self.fun)}: sharding_rule is a text such as "
                f"'i j -> i j', a SdyShardingRule, or a function, got {sharding_rule!r}"
            )
        if sharding_rule is None and (infer_sharding_from_operands or propagate_user_sharding):
            raise NotImplementedError(
                f"def_partition of {_described(self.fun)}: infer_sharding_from_operands and "
                "propagate_user_sharding are for GSPMD, and the compiler divides programs by "
                "Shardy, which does not ask them; write sharding_rule, such as 'i j -> i j'"
            )
        if not decode_shardings:
            raise NotImplementedError(
                f"def_partition of {_described(self.fun)}: shardings are decoded here, into "
                "NamedShardings over the mesh; leave out decode_shardings=False"
            )
        self._partition, self._rule = partition, sharding_rule
        self._staged.clear()
        return partition

    @boundary
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The result of the function.

        Raises:
            AttributeError: `def_partition` was not called.
            TypeError: an argument is not an array and not static, or one of these not hashable.
        """
        if self._partition is None:
            raise AttributeError(
                f"custom_partitioning of {_described(self.fun)}: say first how it is divided over "
                f"devices, by {name_of(self.fun)}.def_partition(partition, sharding_rule=...)"
            )
        given = self._resolved(args, kwargs)
        fixed = tuple([given[i] for i in self.static_argnums if i < len(given)])
        rest = tuple([x for i, x in enumerate(given) if i not in self.static_argnums])
        leaves, in_tree = pytree.flatten(rest)
        positions = [i for i in range(len(given)) if i not in self.static_argnums]
        names = leaf_names(self.fun, rest, None, positions)
        check_array_leaves(leaves, lambda: names, f"custom_partitioning of {name_of(self.fun)}")
        operands = [
            as_operand(x, "custom_partitioning", n) for x, n in zip(leaves, names, strict=True)
        ]
        avals = tuple([aval_of(x) for x in operands])
        for aval, name in zip(avals, names, strict=True):
            if dtypes.is_extended(aval.dtype):
                raise DTypeError(
                    f"custom_partitioning of {_described(self.fun)}: {name} is of dtype "
                    f"{aval.dtype}; pass numbers, such as random.key_data(key)"
                )
        key = (in_tree, avals, tuple([(type(x), x) for x in fixed]), config.trace_key())
        try:
            staged = self._staged.get(key)
        except TypeError:
            raise TypeError(
                f"custom_partitioning of {_described(self.fun)}: static arguments have to be "
                f"hashable, got {fixed!r}"
            ) from None
        if staged is None:
            staged = self._staged[key] = self._stage(fixed, in_tree, avals, names)
        call, constants, out_tree, partition = staged
        outs = custom_partitioning_p.bind(*constants, *operands, call=call, partition=partition)
        return cast(R, pytree.unflatten(out_tree, outs))

    def _resolved(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments by position."""
        if self._signature is None:
            if kwargs:
                raise TypeError(
                    f"custom_partitioning of {_described(self.fun)}: its parameters are not known, "
                    f"so pass {', '.join(kwargs)} by position"
                )
            return args
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(
                f"custom_partitioning of {_described(self.fun)}: the arguments do not go to its "
                f"parameters: {error}"
            ) from None
        given = bound.arguments.keys()
        # Defaults are filled in before what is given, and for static arguments.
        last = max(
            (
                number
                for number, name in enumerate(self._signature.parameters)
                if name in given or number in self.static_argnums
            ),
            default=-1,
        )
        variadic = any(
            p.kind is p.VAR_POSITIONAL and p.name in given
            for p in self._signature.parameters.values()
        )
        bound.apply_defaults()
        passed = [name for name in bound.kwargs if name in kwargs]
        if passed:
            raise TypeError(
                f"custom_partitioning of {_described(self.fun)}: {', '.join(passed)} can be given "
                "by keyword alone, and arguments need positions; make them positional"
            )
        return bound.args if variadic else bound.args[: last + 1]

    def _stage(
        self, fixed: tuple[Any, ...], in_tree: Any, avals: Sequence[Any], names: Sequence[str]
    ) -> tuple[ClosedJaxpr, list[Any], Any, _Partition]:
        def merged(*args: Any) -> Any:
            every = list(args)
            for number, value in zip(self.static_argnums, fixed, strict=False):
                every.insert(number, value)
            return cast(Callable[..., Any], self.fun)(*every)

        update_wrapper(merged, self.fun)
        flat = FlatFunction(merged, in_tree)
        info = DebugInfo(
            "custom_partitioning", name_of(self.fun), location_of(self.fun), tuple(names)
        )

        def recorded(*xs: Any) -> list[Any]:
            return [as_operand(x, "custom_partitioning", "result") for x in flat(*xs)]

        closed = stage(recorded, avals, info)
        described = _described(self.fun)
        if any(isinstance(constant, Tracer) for constant in closed.consts):
            raise TypeError(
                f"custom_partitioning of {described}: the function uses a traced value from "
                "outside; pass it as an argument"
            )
        if closed.effects:
            raise TypeError(
                f"custom_partitioning of {described}: the function has side effects or callbacks; "
                "it can only compute"
            )
        assert self._partition is not None
        call, constants = hoist_consts(closed)
        partition = _Partition(
            described, self._partition, self._rule, fixed, in_tree, flat.out_tree, len(constants)
        )
        return call, constants, flat.out_tree, partition


def _described(function: Any) -> str:
    place = location_of(function)
    return f"{name_of(function)}{f' ({place})' if place else ''}"


def _numbers(given: Any, function: Any, signature: inspect.Signature | None) -> tuple[int, ...]:
    """The numbers of static arguments, from zero on and in order."""
    numbers = (given,) if isinstance(given, int) else tuple(given)
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = [] if signature is None else [*signature.parameters.values()]
    count = sum(p.kind in kinds for p in parameters)
    known = signature is not None and all(p.kind is not p.VAR_POSITIONAL for p in parameters)
    found = set[int]()
    for number in numbers:
        if not isinstance(number, int) or isinstance(number, bool):
            raise TypeError(
                f"custom_partitioning of {_described(function)}: static_argnums are integers, got "
                f"{given!r}"
            )
        place = number + count if number < 0 and known else number
        if place < 0 or (known and place >= count):
            raise ValueError(
                f"custom_partitioning of {_described(function)}: there is no positional parameter "
                f"{number}, which static_argnums={given!r} names; there are {count}"
            )
        found.add(place)
    return tuple(sorted(found))


class _Partition:
    """What a function says of its division, for arguments of some structure."""

    def __init__(
        self,
        name: str,
        partition: Callable[..., Any],
        rule: SdyShardingRule | Callable[..., Any] | None,
        fixed: tuple[Any, ...],
        in_tree: Any,
        out_tree: Any,
        constants: int,
    ) -> None:
        self.name = name
        self._partition = partition
        self._rule = rule
        self._fixed = fixed
        self._in_tree = in_tree
        self._out_tree = out_tree
        self._constants = constants

    def __repr__(self) -> str:
        return f"<partition of {self.name}>"

    def rule(
        self, mesh: Any, operands: Sequence[Any], results: Sequence[Any]
    ) -> SdyShardingRule | None:
        """The sharding rule, with mappings for captured arrays before those of arguments."""
        rule: Any = self._rule
        captured = operands[: self._constants]
        if rule is not None and not isinstance(rule, SdyShardingRule):
            described = [_struct(aval, None) for aval in operands[self._constants :]]
            rule = rule(*self._fixed, mesh, described, [_struct(aval, None) for aval in results])
            if isinstance(rule, str):
                rule = parsed_rule(rule)
            elif not isinstance(rule, SdyShardingRule):
                raise TypeError(
                    f"custom_partitioning of {self.name}: the function sharding_rule returned "
                    f"{rule!r}, and has to return a text such as 'i j -> i j', or a SdyShardingRule"
                )
        if rule is None or not captured:
            return cast("SdyShardingRule | None", rule)
        names = [
            [f"captured_{number}_{d}" for d in range(aval.ndim)]
            for number, aval in enumerate(captured)
        ]
        return SdyShardingRule(
            (*[ArrayMapping(*own) for own in names], *rule.operand_mappings),
            rule.result_mappings,
            reduction_factors=rule.reduction_factors,
            need_replication_factors=(
                *rule.need_replication_factors,
                *[name for own in names for name in own],
            ),
            permutation_factors=rule.permutation_factors,
            **rule.factor_sizes,
        )

    def divided(
        self,
        mesh: Any,
        avals: tuple[Sequence[Any], Sequence[Any]],
        shardings: tuple[Sequence[Any], Sequence[Any]],
    ) -> Division:
        """What the user's function returns, checked and flat."""
        count = self._constants
        whole = [NamedSharding(mesh, PartitionSpec())] * count
        structs = [list(map(_struct, *side)) for side in zip(avals, shardings, strict=True)]
        try:
            answer = self._partition(
                *self._fixed,
                mesh,
                pytree.unflatten(self._in_tree, structs[0][count:]),
                pytree.unflatten(self._out_tree, structs[1]),
            )
        except Exception as error:
            error.add_note(f"raised by the partition of {self.name}, which the compiler asked for")
            raise
        if not isinstance(answer, (tuple, list)) or len(answer) != 4:
            raise TypeError(
                f"custom_partitioning of {self.name}: partition has to return (mesh, function, "
                f"result_shardings, arg_shardings), got {answer!r}"
            )
        own_mesh, function, results, operands = answer
        if not isinstance(own_mesh, Mesh):
            raise TypeError(
                f"custom_partitioning of {self.name}: the first value that partition returns is "
                f"the mesh that it was given, got {own_mesh!r}"
            )
        if not callable(function):
            raise TypeError(
                f"custom_partitioning of {self.name}: the second value that partition returns is a "
                f"function of the parts of the arguments, got {function!r}"
            )
        if isinstance(operands, list):
            operands = tuple(operands)
        flat = FlatFunction(function, self._in_tree)

        def of_parts(*parts: Any) -> list[Any]:
            outs = flat(*parts[count:])
            if flat.out_tree != self._out_tree:
                difference = pytree.structure_difference(
                    self._out_tree, flat.out_tree, "the function", "that for parts"
                )
                raise TypeError(
                    f"custom_partitioning of {self.name}: the function that partition returned has "
                    f"results of another structure than the function itself:\n{difference}"
                )
            return [as_operand(x, "custom_partitioning", "result") for x in outs]

        return Division(
            own_mesh,
            of_parts,
            self._leaves(results, self._out_tree, "third", "result_shardings", "the result"),
            [
                *whole,
                *self._leaves(operands, self._in_tree, "fourth", "arg_shardings", "arguments"),
            ],
        )

    def _leaves(self, given: Any, tree: Any, which: str, name: str, what: str) -> list[Any]:
        leaves, own = pytree.flatten(given, is_leaf=lambda x: x is None)
        for leaf in leaves:
            if not isinstance(leaf, NamedSharding) or not isinstance(leaf.mesh, Mesh):
                raise TypeError(
                    f"custom_partitioning of {self.name}: the {which} value that partition "
                    f"returns, {name}, holds a NamedSharding over the mesh for each array, such as "
                    f"NamedSharding(mesh, PartitionSpec()); got {leaf!r}"
                )
        if own != tree:
            raise TypeError(
                f"custom_partitioning of {self.name}: the {which} value that partition returns, "
                f"{name}, has the structure of {what}, {tree}, got {own}"
            )
        return leaves


def _struct(aval: Any, sharding: Any) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(aval.shape, aval.dtype, sharding=sharding, weak_type=aval.weak_type)
