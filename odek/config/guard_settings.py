"""The settings of the guard: a second opinion on what goes into the memory."""

from typing import Annotated, Literal

from odek.config.section import Section, address, setting

__all__ = ["GuardScanSettings", "GuardSettings"]

_EXAMPLE_URL = "http://127.0.0.1:8080/detect"


class GuardScanSettings(Section, frozen=True, kw_only=True):
    """What the guard is asked about."""

    memory: Annotated[
        bool, setting("Facts, what is extracted, atoms, and the lines of a session's buffer.")
    ] = True


class GuardSettings(Section, frozen=True, kw_only=True):
    """A second opinion on texts that would be remembered, beside the rules built in."""

    provider: Annotated[
        Literal["local", "piguard"],
        setting("local: the rules alone; piguard: the rules, then a detector of injections that runs here."),
    ] = "local"
    url: Annotated[
        str,
        address("Where one text is judged. Texts for the memory are sent there.", _EXAMPLE_URL),
    ] = ""
    long_url: Annotated[
        str,
        address("The same for a long text; empty: `long` beside it.", _EXAMPLE_URL),
    ] = ""
    batch_url: Annotated[
        str,
        address("The same for several texts; empty: `raw` beside it.", _EXAMPLE_URL),
    ] = ""
    socket_path: Annotated[
        str, setting("Unix socket of the detector; the addresses then give the paths alone.")
    ] = ""
    threshold: Annotated[float, setting("How sure of an injection the detector must be.", gt=0.0, le=1.0)] = (
        0.9
    )
    timeout_seconds: Annotated[float, setting("Longest time of one request.", gt=0, le=60.0)] = 1.0
    fallback_to_local: Annotated[
        bool,
        setting(
            "If the detector cannot be asked: true, the rules decide alone; false, nothing is remembered."
        ),
    ] = True
    max_text_length: Annotated[
        int, setting("Characters of a text that are sent; 0: all.", ge=0, le=1_000_000)
    ] = 0
    scan: GuardScanSettings = GuardScanSettings()
