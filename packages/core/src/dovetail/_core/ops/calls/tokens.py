"""Tokens: values without data that impose an order of execution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail._core.ir.avals import AbstractToken, abstract_token
from dovetail._core.trace.primitive import Primitive

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder
    from dovetail._core.runtime.arrays.tokens import Token


class CreateToken(Primitive):
    """A token that waits for nothing."""

    name = "create_token"
    no_derivative = "a token holds no data"
    only_tokens = True

    def abstract(self) -> Any:
        return abstract_token

    def reference(self) -> Any:
        return np.zeros(0, bool)

    def lower(self, context: Builder) -> Any:
        return context.create_token()


create_token_p: Final = CreateToken()


class AfterAll(Primitive):
    """A token that waits for all its operands, which are tokens."""

    name = "after_all"
    no_derivative = "a token holds no data"
    only_tokens = True

    def abstract(self, *avals: Any) -> Any:
        for number, aval in enumerate(avals):
            if not isinstance(aval, AbstractToken):
                raise TypeError(
                    "the operands of after_all are tokens, as lax.create_token gives them; operand "
                    f"{number} is {aval.short_name()}"
                )
        return abstract_token

    def reference(self, *tokens: Any) -> Any:
        return np.zeros(0, bool)

    def lower(self, context: Builder, *tokens: Any) -> Any:
        return context.op("stablehlo.after_all", tokens, abstract_token)


after_all_p: Final = AfterAll()


# Public functions.


def create_token(_: object | None = None) -> Token:
    """A token: a value without data that other operations can wait for.

    Tokens are arguments and results of programs like arrays. `optimization_barrier` of a token and
    an array makes users of either wait for both.

    Args:
        _: ignored.

    Returns:
        A token that waits for nothing. It has a method ``block_until_ready``, and neither shape nor
        dtype: it cannot be batched, differentiated or computed with.

    Example:
        >>> import dovetail as dt
        >>> from dovetail import lax
        >>> dt.make_jaxpr(lax.create_token)()
        { lambda ; . let a:Tok = create_token  in (a,) }
    """
    return create_token_p.bind()


def after_all(*operands: Token) -> Token:
    """A token that waits for all given tokens.

    Args:
        *operands: tokens.

    Returns:
        A token.

    Raises:
        TypeError: an operand is not a token.

    Example:
        >>> from dovetail import lax
        >>> token = lax.after_all(lax.create_token(), lax.create_token())
        >>> token.block_until_ready()
        Token()
    """
    for number, token in enumerate(operands):
        aval = getattr(token, "aval", None)
        if not isinstance(aval, AbstractToken):
            what = f"{token!r:.80}" if aval is None else f"an array, {aval.short_name()}"
            raise TypeError(
                f"lax.after_all takes tokens, as lax.create_token gives them; argument {number} is "
                + what
            )
    return after_all_p.bind(*operands)
