"""Start-up without the garbage collector.

Importing makes hundreds of thousands of objects that all stay. Looking through them for
garbage again and again costs about a tenth of the time to the first request (measured by
benchmarks/bench_startup.py), and finds none.
"""

import gc

__all__ = ["begin", "end"]


def begin() -> None:
    """Collect no garbage from here on."""
    gc.disable()


def end() -> None:
    """Set what there is aside for good, and collect garbage from here on."""
    gc.freeze()
    gc.enable()
