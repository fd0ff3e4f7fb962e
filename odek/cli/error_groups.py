"""The one error inside the groups that nurseries make of it."""

from collections.abc import Generator
from contextlib import contextmanager

import trio

__all__ = ["unwrapped_errors"]


@contextmanager
def unwrapped_errors() -> Generator[None]:
    """Raise the one error of nested groups by itself; nurseries wrap what passes through them."""
    try:
        yield
    except BaseExceptionGroup as group:
        leaves = list(_leaves(group))
        errors = [leaf for leaf in leaves if not isinstance(leaf, trio.Cancelled)]
        if len({str(error) for error in errors}) == 1:
            raise errors[0] from errors[0].__cause__
        raise


def _leaves(group: BaseExceptionGroup) -> Generator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
