"""odek: an agent runtime whose memory can be trusted.

Importing the package loads nothing else; name the module that you need.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
