"""No text breaks the classifier, the scanner or the masker, and none makes them slow.

By hand, for ten minutes, with a limit of half a second for each call:

    ODEK_FUZZ_SECONDS=600 pytest -m slow tests/property/test_trust_fuzz.py
"""

import faulthandler
import os
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from odek.trust.paths import Where
from odek.trust.scan import scan
from odek.trust.secrets import mask
from odek.trust.shell import classify
from tests.support.fuzzing import hostile_text

PROJECT = Path("/home/u/work/project")
HERE = Where(PROJECT, PROJECT, Path("/home/u"), Path("/home/u/.odek"))
READERS: dict[str, Callable[[str], object]] = {
    "classify": lambda text: classify(text, HERE),
    "scan": scan,
    "mask": mask,
}
LIMIT_SECONDS = 0.5  # of processor time for one call, on a machine that has a processor to spare
SLACK = 10  # in the short form, which runs beside others


def fuzz(seconds: float, limit_seconds: float, seed: int) -> int:
    """Feed texts for so long; return how many. Fails with the text that breaks or takes too long."""
    random = Random(seed)
    started = time.monotonic()
    count = 0
    while time.monotonic() - started < seconds:
        text = hostile_text(random)
        for name, read in READERS.items():
            before = time.process_time()
            try:
                read(text)
            except Exception as error:  # noqa: BLE001 - every one is a finding
                pytest.fail(f"{name} raised {error!r}, seed {seed}, text {count}: {text[:500]!r}")
            taken = time.process_time() - before
            if taken > limit_seconds:
                # Once more: what is slow for the text's sake is slow again.
                before = time.process_time()
                read(text)
                taken = min(taken, time.process_time() - before)
            assert taken <= limit_seconds, (
                f"{name} took {taken:.2f} s for {len(text)} characters, seed {seed}, text {count}: "
                f"{text[:300]!r}"
            )
        count += 1
    return count


def test_no_text_breaks_a_reader() -> None:
    """A second of random texts, the same ones each time."""
    assert fuzz(1.0, LIMIT_SECONDS * SLACK, seed=1) > 0


@pytest.mark.slow
def test_no_text_breaks_or_slows_a_reader() -> None:
    """Random texts, others each time, for as long as the environment says; 20 seconds by default."""
    seconds = float(os.environ.get("ODEK_FUZZ_SECONDS", "20"))
    faulthandler.cancel_dump_traceback_later()  # it takes a test of minutes for one that hangs
    count = fuzz(seconds, LIMIT_SECONDS, seed=time.time_ns())

    print(f"{count} texts")  # noqa: T201 - for who runs it by hand, with -s
