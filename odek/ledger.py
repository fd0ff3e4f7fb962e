"""What a turn changed, and whether the answer owns up to it."""

import re

__all__ = ["Ledger"]

_DENIAL = r"""
    \b(?:
        (?:i|we)\s+(?:have\s+not|haven['\u2019]t|did\s+not|didn['\u2019]t|was\s+(?:not\s+able|unable)\s+to
            |could\s+not|couldn['\u2019]t|cannot|can['\u2019]t)\s+(?:\w+\s+){0,3}?
            (?:chang|modif|creat|writ|wrote|edit|updat|add|remov|delet|sav|made|make|appl|touch)\w*
      | no\s+(?:files?|changes?|edits?|modifications?)\s+(?:were|was|have\s+been|has\s+been)\s+
            (?:made|changed|modified|created|written|applied|saved|touched)
      | nothing\s+(?:was|has\s+been)\s+(?:changed|modified|written|saved)
    )
    """

_EXCEPTION = (
    r"\b(?:any(?:thing)?\s+(?:else|other)|other|further|additional|more|beyond|besides|except|apart)\b"
)


class Ledger:
    """The completed changes of one turn, in order, each named once."""

    def __init__(self) -> None:
        self.changes: list[str] = []

    def record(self, changed: tuple[str, ...]) -> None:
        """Note what a successful call says that it changed."""
        for name in changed:
            if name not in self.changes:
                self.changes.append(name)

    def denied_by(self, answer: str) -> bool:
        """Tell whether ``answer`` denies changes although some did complete.

        A sentence that denies only *further* changes is honest and passes.
        """
        if not self.changes:
            return False
        for match in re.finditer(_DENIAL, answer, re.IGNORECASE | re.VERBOSE):
            start = answer.rfind(".", 0, match.start()) + 1
            end = answer.find(".", match.end())
            sentence = answer[start : end if end >= 0 else len(answer)]
            if not re.search(_EXCEPTION, sentence, re.IGNORECASE):
                return True
        return False
