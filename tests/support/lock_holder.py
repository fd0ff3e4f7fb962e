"""A process that takes a lock, says so, and keeps it until its stdin ends.

With ``fork`` it leaves a copy of itself behind that lives as long, and gives the lock back at once.
``--note`` and a text have that stand in the file.
"""

import os
import sys
from pathlib import Path

from odek.storage.locks import hold

if __name__ == "__main__":
    note = sys.argv[sys.argv.index("--note") + 1].encode() if "--note" in sys.argv else None
    lock = hold(Path(sys.argv[1]), timeout_seconds=10, note=note)
    if "fork" in sys.argv:
        if os.fork() == 0:
            sys.stdin.read()
            os._exit(0)
        lock.release()
    os.write(1, b"held\n")
    sys.stdin.read()
    lock.release(remove="remove" in sys.argv)
