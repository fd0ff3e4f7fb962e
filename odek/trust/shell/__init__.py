"""The risk class of a shell command line: ``classify`` is the whole interface."""

from odek.trust.shell.classify import classify

__all__ = ["classify"]
