"""Files that survive a crash, and locks that processes share. Blocking, no trio: call it in a thread."""
