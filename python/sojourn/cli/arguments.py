"""Options that take several values, such as `--queues codel "pfifo limit 300p"`."""

from __future__ import annotations

SEVERAL = {"compare": ("--queues", "--policies")}
"""Options that take all words up to the next option, by command."""


def spread(arguments: list[str]) -> list[str]:
    """Returns the arguments with one option for each value.

    The parser supports only one value after an option, but an option may be repeated. So
    `--queues a b` becomes `--queues a --queues b`. An option without a value becomes the last
    argument, because the parser would take the next option as its value.
    """
    options = SEVERAL.get(next((a for a in arguments if not a.startswith("-")), ""), ())
    result: list[str] = []
    current: str | None = None
    given = True
    for i, argument in enumerate(arguments):
        is_option = argument.startswith("-") and len(argument) > 1
        if is_option and current is not None and not given:
            break
        if argument == "--":
            return result + arguments[i:]
        if is_option:
            current, given = (argument if argument in options else None), False
            if current is None:
                result.append(argument)
        elif current is not None:
            result += [current, argument]
            given = True
        else:
            result.append(argument)
    if current is not None and not given:
        result.append(current)
    return result
