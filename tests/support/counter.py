"""A process that adds its own numbers to a shared file, one at a time, under a lock."""

import json
import sys
from pathlib import Path

from odek.storage.files import read_file, replace_file
from odek.storage.locks import hold

if __name__ == "__main__":
    directory, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    for number in range(count):
        lock = hold(directory / "lock", timeout_seconds=60)
        entries = json.loads(read_file(directory / "entries", limit_bytes=1_000_000))
        replace_file(directory / "entries", json.dumps([*entries, f"{name}-{number}"]).encode())
        lock.release(remove="remove" in sys.argv)
