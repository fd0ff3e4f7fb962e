"""Measuring on this machine, with this person's texts; loaded by ``odek bench`` and the benchmarks alone."""
