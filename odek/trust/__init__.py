"""Decisions about trust: what a call may do, what a text may say, where it came from. All pure."""
