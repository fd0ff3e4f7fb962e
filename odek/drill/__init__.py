"""Attacks on the memory, tried against a configuration in a scratch directory."""
