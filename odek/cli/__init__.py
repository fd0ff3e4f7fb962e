"""The faces for a terminal. One file a command: parse, call, print, exit code."""
