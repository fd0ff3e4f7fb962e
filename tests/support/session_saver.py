"""A process that saves one session again and again, and says on stdout what is safe.

``python -m tests.support.session_saver DIRECTORY SAVES``. The same run makes the same system
calls, and the same bytes. A file that is there counts as damaged, and is to be kept aside.
"""

import os
import sys
from pathlib import Path

from odek.errors import StoreError
from odek.messages import AssistantMessage, Message, SystemMessage, UserMessage
from odek.sessions.document import Header
from odek.sessions.writer import SessionWriter
from odek.storage.locks import hold

NAME = "20260101-x"


def conversation(saves: int) -> list[Message]:
    """Return what the file holds after so many saves."""
    messages: list[Message] = [SystemMessage("s")]
    for number in range(1, saves + 1):
        messages += [UserMessage(f"question {number}"), AssistantMessage(f"answer {number} " + "x" * 1000)]
    return messages


def main(directory: Path, saves: int) -> None:
    """Save, and report ``begin N``, then ``saved N`` or ``failed N: reason``."""
    path = directory / f"{NAME}.json"
    damaged = path.read_bytes() if path.exists() else None
    writer = SessionWriter(path, hold(directory / "lock", timeout_seconds=0), str, damaged=damaged)
    for number in range(1, saves + 1):
        os.write(1, f"begin {number}\n".encode())
        try:
            writer.write(Header(id=NAME), conversation(number))
        except StoreError as error:
            os.write(1, f"failed {number}: {error}\n".encode())
        else:
            os.write(1, f"saved {number}\n".encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
