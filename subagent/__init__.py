"""Child processes: started, streamed, and ended with everything that they started.

A small library that knows nothing of agents and imports nothing from ``odek``.
"""
