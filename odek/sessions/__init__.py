"""Conversations on disk: one JSON file each, owned by one process at a time."""
