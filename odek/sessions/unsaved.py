"""A session that is never written, for a run that shall leave nothing behind."""

from odek.sessions.document import Header
from odek.sessions.session import Session
from odek.text import clip_line
from odek.timestamps import current_timestamp

__all__ = ["UNSAVED", "unsaved_session"]

UNSAVED = "unsaved"
"""The id of every session without a file."""

TITLE_WIDTH = 100


def unsaved_session(model: str, task: str) -> Session:
    """Return a new session without a file; it has no id that anybody could go on with."""
    header = Header(
        id=UNSAVED, created_at=current_timestamp(), model=model, task=clip_line(task, TITLE_WIDTH)
    )
    return Session(header, (), writer=None)
