"""Everything that odek raises on purpose.

``str(error)`` is one line, or few, fit for a terminal: it names the thing, the
value and what to do. Foreign exceptions are translated where they arise.

    OdekError
    ├─ ConfigError                 flags, files, environment: names place, key, expectation
    ├─ ModelError                  the provider failed us
    │   ├─ ModelUnavailableError     tried again, still down
    │   ├─ ModelRejectedError        4xx: key, model name, schema; trying again is no use
    │   └─ ContextOverflowError      the request is too long for the model's window
    ├─ StoreError                  a file could not be read or written as promised
    │   ├─ StoreBusyError            another process holds the lock
    │   └─ StoreCorruptError         a record cannot be read; names file and record
    ├─ MemoryRefusedError          a change to the memory is not made: too large, unsafe, ambiguous
    ├─ EmbeddingError              no vectors for texts: whoever compares them does without
    └─ LimitReachedError           steps, tokens, money or time: ends the turn, is no crash
    ToolError                      not an OdekError: the model reads it as a tool result
    └─ TargetChangedError            what was approved is no longer what is there
"""


class OdekError(Exception):
    """Base of all errors raised on purpose; a bug is never one of these."""


class ConfigError(OdekError):
    """A flag, file or variable is wrong; the message says where and what was expected."""


class ModelError(OdekError):
    """The model did not give a usable answer.

    ``partial`` holds the text that had arrived before the failure; it may be empty.
    """

    def __init__(self, message: str, *, partial: str = "") -> None:
        super().__init__(message)
        self.partial = partial


class ModelUnavailableError(ModelError):
    """The provider cannot be reached or keeps failing, after every permitted retry."""


class ModelRejectedError(ModelError):
    """The provider refused the request itself; the same request will be refused again."""


class ContextOverflowError(ModelRejectedError):
    """The request does not fit the model's context window."""


class StoreError(OdekError):
    """A file below the home directory could not be read or written as promised."""


class StoreBusyError(StoreError):
    """Another process holds a lock; says which, as far as that is known.

    ``pid`` is the holder's process id, or None when the lock file does not tell.
    """

    def __init__(self, message: str, *, pid: int | None = None) -> None:
        super().__init__(message)
        self.pid = pid


class StoreCorruptError(StoreError):
    """A file is there but cannot be understood; it has been left as it is."""


class MemoryRefusedError(OdekError):
    """A change to the memory was not made: too large, unsafe, ambiguous or about nothing there."""


class EmbeddingError(OdekError):
    """Texts could not be made vectors; nothing may be concluded about their likeness."""


class LimitReachedError(OdekError):
    """A budget is spent: iterations, tokens, money or time. The work so far is kept."""


class ToolError(Exception):
    """A tool call failed in a way that the model should read and react to."""


class TargetChangedError(ToolError):
    """A file changed between the preparation of a call and its execution."""
