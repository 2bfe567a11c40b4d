"""Whether an error is one that a user can read and act on.

It is where a statement `raise` of ours made it, or the call itself was not one that Python could
make. What Python, NumPy or jaxlib raise somewhere inside is a finding: nobody thought of this case,
and the message tells of something that the user did not write.
"""

from __future__ import annotations

import linecache
import re
import traceback
from pathlib import Path

CALL = "<call>"
"""The name of the file that a call seems to be in."""

OWN = re.compile(r"(^|[/\\])(src|site-packages)[/\\]dovetail(_\w+)?[/\\]")
"""Files of the library."""

INTERNAL = re.compile(
    r"'NoneType' object|(?<![/\\\w])_core\b|MLIR|stablehlo|chlo\.|INTERNAL:|INVALID_ARGUMENT|"
    r"UNIMPLEMENTED|nanobind|incompatible function arguments|\bxla::|\bhlo\b"
)
"""Words that only those who wrote the library know."""

WRONG_CALL = re.compile(r"([\w.<>]+)\(\) (missing|takes|got) ")
"""What Python says of a call that does not fit a function's parameters."""

FAMILIAR = re.compile(
    # Of Python and NumPy themselves, about a file, a buffer or a condition of the user's.
    r"expected str, bytes or os.PathLike object|a bytes-like object is required|"
    r"The truth value of an (array|empty array)|could not convert string to|"
    # Of NumPy, which compares an array with the words that an option takes.
    r"ufunc 'equal' not supported for the input types|"
    # Of jaxlib, which names the argument.
    r"is_leaf predicate returned a non-boolean value|"
    # Of NumPy's methods and printing options, which ours hand on as they are.
    r"can only convert an array of size 1 to a Python scalar|precision must be an integer|"
    r"fromstring\(\) argument|"
    r"order must be one of 'C', 'F', 'A', or 'K'|order must be str, not|"
    # Of NumPy's dtypes, where a function is wanted: they are the user's, and called as asked.
    r"function takes at most \d argument|setting an array element with a sequence"
)
"""Messages that are right although no statement of ours raised them, by why."""

#: Errors that are right wherever they come from; what cannot be encoded is the name of a file.
NATURAL = (OSError, KeyboardInterrupt, StopIteration, UnicodeEncodeError)


def what_is_wrong(error: BaseException, known: frozenset[str]) -> tuple[str, str] | None:
    """Why an error is a finding, and where it came from; None if a user can read it.

    Args:
        error: the error.
        known: names of functions that the user knows.
    """
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1]
    # What others raise is the matter of who called them: the library or the user.
    caller = next(f for f in reversed(frames) if OWN.search(f.filename) or f.filename == CALL)
    where = f"{'/'.join(Path(caller.filename).parts[-2:])}: {caller.name}"
    text = str(error)
    if isinstance(error, NATURAL):
        return None
    if (found := INTERNAL.search(text)) and (caller.filename != CALL or "'No" not in found[0]):
        return f"the message says {found[0]!r}", where
    if caller.filename == CALL or FAMILIAR.search(text):
        return None
    if not text.strip():
        return "there is no message", where
    fits = WRONG_CALL.match(text)
    if fits is not None and fits[1].rpartition(".")[2] in known:
        return None  # Python names a function that the user wrote, or called
    line = linecache.getline(last.filename, last.lineno or 0).strip()
    if caller is last and re.match(r"raise\b", line):
        return None
    return "raised by no statement of ours", where
