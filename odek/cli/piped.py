"""What is piped in beside a task, as in ``cat log | odek run "explain"``."""

import os
import select
import stat
import sys
from pathlib import Path
from typing import Final

from odek.errors import ConfigError

__all__ = ["read_piped"]

READ_LIMIT_BYTES: Final = 256 * 1024 * 1024
"""What comes after is left: `yes | odek run …` must begin at some time. No measurement behind this figure."""

_PIECE_BYTES: Final = 1 << 16

FIRST_BYTE_SECONDS: Final = 1.0
"""For a writer to begin, where nobody is there to end the wait: a program may hold a pipe open that it
never writes to. No measurement behind this figure."""

_LAUNCHERS: Final = frozenset(
    ["timeout", "env", "nice", "ionice", "nohup", "setsid", "stdbuf", "time", "sudo", "doas", "uv", "strace"]
)
"""They start one command and leave it their stdin, so that what is piped to them is meant for it."""


def read_piped(*, wait: bool) -> str:
    """Return the text that is piped to this very command, "" where there is none. Blocking.

    A stdin that a shell or a program shares with the command is left alone: the rest of a script, or of
    the list that a loop reads, is none of the command's business. With ``wait`` it is read whatever it is,
    and however late it comes.

    Raises:
        ConfigError: it is not text.
    """
    descriptor = sys.stdin.fileno()
    if not wait and not (_is_pipe_or_file(descriptor) and _is_own(descriptor) and _begins(descriptor)):
        return ""
    return _text(*_read(descriptor))


def _is_pipe_or_file(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)


def _is_own(descriptor: int) -> bool:
    """Tell whether stdin was made for this command: nobody above has the same, but for launchers.

    A system without /proc does not tell; there it is taken for the command's own.
    """
    mine = os.fstat(descriptor)
    pid = os.getppid()
    while pid > 1:
        try:
            if not os.path.samestat(mine, Path(f"/proc/{pid}/fd/0").stat()):
                return True
            status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except PermissionError:  # somebody else's, as behind `su`
            return False
        except OSError:
            return True
        name, _, rest = status.partition("(")[2].rpartition(")")
        if name not in _LAUNCHERS:
            return False
        pid = int(rest.split()[1])
    return True


def _begins(descriptor: int) -> bool:
    """Wait for the first byte or the end; where a person watches as long as it takes, else a moment."""
    if select.select([descriptor], [], [], FIRST_BYTE_SECONDS)[0]:
        return True
    if _has_terminal():
        print("odek: waiting for what is piped in", file=sys.stderr)
        return True
    print(
        f"odek: nothing came through the pipe within {FIRST_BYTE_SECONDS:.0f} s, and it is not waited for; "
        "`-` behind the task waits",
        file=sys.stderr,
    )
    return False


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def _read(descriptor: int) -> tuple[bytes, bytes, int]:
    """Return the beginning, the end, and how many bytes are left out between them."""
    from odek.attachments import FILE_LIMIT_BYTES

    half = FILE_LIMIT_BYTES // 2
    head, tail, size = b"", b"", 0
    while size < READ_LIMIT_BYTES and (piece := os.read(descriptor, _PIECE_BYTES)):
        size += len(piece)
        taken = min(half - len(head), len(piece))
        head += piece[:taken]
        tail = (tail + piece[taken:])[-half:]
    return head, tail, size - len(head) - len(tail)


def _text(head: bytes, tail: bytes, left_out_bytes: int) -> str:
    from odek.attachments import LEFT_OUT
    from odek.text import without_surrogates
    from odek.tools.textfile import binary_kind, decode_text, sniff

    if sniff(head) is None:
        raise ConfigError(f"what is piped in is {binary_kind(head)}, not text")
    if left_out_bytes:
        start, end = (part.decode("utf-8", "replace").strip("\ufffd") for part in (head, tail))
        return f"{start}\n[… {left_out_bytes:,}{LEFT_OUT}\n{end}"
    try:
        text, _ = decode_text(head + tail)
    except ValueError:
        raise ConfigError("what is piped in is not in the encoding that its first bytes promise") from None
    return without_surrogates(text) if text.strip() else ""
