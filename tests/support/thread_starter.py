"""A module that starts a thread when it is imported, as some libraries do."""

import _thread
import time

__all__: list[str] = []

_thread.start_new_thread(time.sleep, (300,))
