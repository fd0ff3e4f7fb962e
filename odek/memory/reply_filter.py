"""Telling a record of a session from a reply that declines, chats, or goes on with the session. Pure.

The prompt asks for a record in the third person. What begins otherwise was not written as
one, and stored it would be recalled as if it had happened.
"""

import re

from odek.llm.think_tags import without_opened_reasoning

__all__ = ["looks_like_episode", "tidy_reply"]

MINIMUM_WORDS = 4
"""Fewer say nothing that a later session could use."""

OPENING_CHARACTERS = 240
"""Longer than any first sentence should be; what counts is how the reply begins."""

_THINKING = re.compile(r"<(/?)(think|thinking|thought|reasoning)>", re.IGNORECASE)
_FENCE = re.compile(r"\A```\w*\n(.*?)\n?```\s*\Z", re.DOTALL)
_HEADING = re.compile(
    r"""\A(?:
        \#{1,6}[^\n]*\n+
      | [*_]{2}[^\n*_]{1,60}[*_]{2}:?[ ]*\n+
      | (?:[*_]{0,2}(?:session\s+)?(?:summary|record)[*_]{0,2}\s*[:-]\s*[*_]{0,2})
      | (?:(?:sure|certainly|of\ course|okay|ok)[,.!]\s*)?here(?:\ is|'s|\ are)\b[^\n:.]{0,100}:\s*
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_PARTING = re.compile(
    r"""\b(?:
        let\ me\ know | feel\ free | would\ you\ like | do\ you\ want | happy\ to\ help | want\ me\ to
      | shall\ i | should\ i | if\ you(?:'d|\ would|\ need|\ have|\ want) | hope\ this\ helps
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)

# Who is spoken of, rather than to: reported speech may hold any word.
_REPORTED = re.compile(
    r"\A(?:on\ [\d-]+,?\ )?(?:the|a|this)\ (?:person|user|developer|agent|assistant|session|team)\b(?!\s*:)",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"\"[^\"\n]*\"|`[^`\n]*`|«[^»\n]*»|(?<!\w)'[^'\n]*'(?!\w)")

_DECLINES = re.compile(
    r"""
      \bi(?:'m|\ am)?\ (?:really\ |very\ |so\ )?(?:sorry|afraid)\b
    | \A(?:sorry|apologies|my\ apologies|unfortunately|regrettably)\b(?!-)
    | \b(?:i|we)\ (?:can't|can\ ?not|could\ not|couldn't|won't|will\ not|must\ decline
        |am\ not\ able|(?:am|was)\ unable|have\ no|see\ no|need\ (?:more|the|to\ see)
        |do(?:n't|\ not)(?:\ \w+)?\ (?:have|see|find|know))\b
    | \bi'm\ (?:not\ able|unable|not\ (?:sure|comfortable))\b
    | \bas\ an\ (?:ai|llm|(?:(?:ai|large)\ )?language\ model|assistant)\b
    | \A(?:there|it)(?:'s|\ is|\ was|\ are|\ were|\ appears|\ looks|\ seems)\b[^.]{0,40}
        \b(?:nothing|empty|incomplete|not\ enough|insufficient
        |no\ (?:transcript|session|conversation|content|information|text|record|meaningful|notable|durable))\b
    | \A(?:the|this)\ (?:provided\ |given\ )?(?:transcript|session|conversation|message|text|input)\s
        (?:(?:you\ )?(?:provided\ )?(?:is|was|appears|seems|looks)\b[^.]{0,30}
            \b(?:empty|blank|incomplete|truncated|cut\ off|missing|too\ short|not\ provided)
        |(?:contains?|contained|holds?|held|includes?|included|has|had)
            \ (?:nothing|no\b|only\ (?:a\ )?greeting))
    | \A(?:nothing|no\ (?:transcript|session|conversation|content))\b(?!-)
    | \Ano\ (?:meaningful|notable|durable|significant|relevant)\b
    | \A(?:please|kindly|could\ you|can\ you|would\ you)\b
    | \A(?:request|task)\ (?:refused|denied|declined)\b
    | \A(?:unable|not\ able|not\ enough|insufficient|error|failed)\b[^.]{0,30}
        \b(?:to|information|context|content|transcript)\b
    | \A(?:n/?a|none|null|nil|nope|no)\b(?:\s*[^\w\s'-]|\s+[^\w\s]|\s*\Z)
    """,
    re.IGNORECASE | re.VERBOSE,
)

# The same in the languages that models fall into most.
_DECLINES_ELSEWHERE = re.compile(
    r"""\A(?:
        es\ tut\ mir\ leid | leider\ (?:kann|ist|habe|gibt) | ich\ kann\b[^.]{0,60}\bnicht | entschuldigung
      | je\ suis\ désolé | désolée? | je\ ne\ (?:peux|suis) | lo\ siento | no\ puedo | lamento | desculpe
      | sinto\ muito | não\ (?:posso|consigo) | mi\ dispiace | non\ posso | het\ spijt\ me
      | извините | к\ сожалению | я\ не\ могу
      | 抱歉 | 很抱歉 | 对不起 | 我无法 | 無法 | 无法 | 申し訳 | すみません | 죄송
    )""",
    re.IGNORECASE | re.VERBOSE,
)

_CHATS = re.compile(
    r"""\A(?:
        picking\ (?:this|it|things|up|back)\b | (?:let's|let\ (?:me|us))\b | back\ to\b
      | (?:sure|certainly|absolutely|definitely|of\ course|gladly|great|perfect|awesome|excellent|okay|ok
          |alright|all\ right|yes|yep|yeah|right|understood|noted|got\ it|will\ do|sounds\ good|no\ problem
          |you're\ welcome|welcome|done|ready|good\ (?:question|point|morning|afternoon|evening)|thanks?
          |thank\ you|hi|hello|hey|greetings|happy\ to|glad\ to|hmm|wait|oh|ah|well|so|actually)\b
          (?:\s*[,.!:;-]|\s*\Z|\ (?:you|to|that|it|question|i|let|for\ (?:the|your|that|this))\b)
      | i'(?:ll|m|ve|d)\b
      | i\ (?:will|am|have|would|can|should|think|need|want|see|understand|suggest|recommend|just|now|also
          |notice|guess|hope|believe|plan)\b
      | (?:we'(?:ll|re|ve)|we\ (?:can|should|will|need|could))\b
      | (?:now|next|first|then|finally|following\ up|moving\ on|to\ continue|as\ (?:requested|discussed
          |mentioned|you))\b[,:]?\ (?:i|i'\w+|let|we|on|with|from|where|up)\b
      | (?:continuing|resuming)\b | where\ were\ we\b
      | (?:looking|going)\ (?:at|back|through)\b[^.]*\b(?:i|let|you)\b
      | (?:the\ )?(?:user|human|assistant|system|ai|agent|person|me|bot)\s*:
      | (?:feel\ free|don't\ hesitate|what\ (?:would|should|can|do)|how\ (?:can|may|would|should|do)
          |which\ (?:one|of|would)|would\ you|do\ you|did\ you|shall\ (?:i|we)|should\ i|may\ i
          |is\ there\ anything)\b
      | (?:try|run|use|open|check|remember|note|make\ sure|go\ ahead|ignore|disregard)\ (?:the|this|that|these
          |your|it|again|all|a|to|out|running)\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_SECOND_PERSON = re.compile(r"\b(?:you|your|yours|yourself)\b", re.IGNORECASE)
_PLAIN_QUOTES = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")

_SHRAPNEL = re.compile(
    r"\A(?:[\[{<]|```|(?:function|tool)[_ ]?call|\"?summary\"?\s*:|[-*•\s\d.]*\Z)", re.IGNORECASE
)


def tidy_reply(reply: str) -> str:
    """Return the text of a reply without thinking aloud, code fence, heading, preamble and parting words."""
    text = without_opened_reasoning(_without_thinking(reply)).strip()
    if fenced := _FENCE.match(text):
        text = fenced[1].strip()
    for _ in range(2):  # a heading above a preamble, or the other way round
        if heading := _HEADING.match(text.translate(_PLAIN_QUOTES)):
            text = text[heading.end() :].strip()
    text = _without_parting(text)
    if len(text) > 1 and text[0] == text[-1] == '"' and text.count('"') == 2:
        text = text[1:-1].strip()
    return text


def _without_thinking(text: str) -> str:
    """Return ``text`` without what stands between tags, each with the next that closes it."""
    tags = list(_THINKING.finditer(text))
    last_end = {tag[2].lower(): tag.start() for tag in tags if tag[1]}
    kept: list[str] = []
    start = begin = 0
    opened = ""
    for tag in tags:
        is_end, name = tag[1], tag[2].lower()
        if not is_end and not opened and tag.start() < last_end.get(name, 0):
            begin, opened = tag.start(), name
        elif is_end and name == opened:
            kept.append(text[start:begin])
            start, opened = tag.end(), ""
    return "".join((*kept, text[start:]))


def _without_parting(text: str) -> str:
    """Return ``text``, which ends in no white space, up to the sentences at its end that take leave."""
    plain, end = text.translate(_PLAIN_QUOTES), len(text)
    while True:
        said = len(plain[:end].rstrip(".!?"))
        start = max(plain.rfind(mark, 0, said) for mark in ".!?\n") + 1
        if start == 0 or not _PARTING.search(plain, start, said):
            return text[:end]
        end = len(plain[:start].rstrip())


def looks_like_episode(text: str) -> bool:
    """Tell whether ``text`` is a record of what happened, by how it begins.

    It is not when it declines, answers or goes on with the conversation, addresses the
    reader, asks, or is what is left of a malformed reply.
    """
    text = text.strip().translate(_PLAIN_QUOTES)
    if _SHRAPNEL.match(text) or not _is_long_enough(text):
        return False
    opening = _opening(text)
    if _DECLINES_ELSEWHERE.match(opening) or _CHATS.match(opening):
        return False
    if _REPORTED.match(opening) and not _DECLINES.match(opening):
        return True
    unquoted = _QUOTED.sub(" ", opening)
    if opening.rstrip("\"' ").endswith(("?", "？")):  # noqa: RUF001 - the mark of CJK texts
        return False
    return not (_DECLINES.search(unquoted) or _SECOND_PERSON.search(unquoted))


def _opening(text: str) -> str:
    """Return the first sentence, without list and emphasis marks in front."""
    bare = re.sub(r"\A[\s>*_#•-]+", "", text)
    end = re.search(r"[.!?](?=\s|\Z)|[。！？]|\n", bare[:OPENING_CHARACTERS])  # noqa: RUF001 - CJK full stops
    return bare[: end.end() if end else OPENING_CHARACTERS].strip()


def _is_long_enough(text: str) -> bool:
    """Count words, and letters where a script writes without spaces."""
    words = re.findall(r"\w+", text)
    letters = sum(len(word) for word in words)
    return len(words) >= MINIMUM_WORDS or (not text.isascii() and letters >= 4 * MINIMUM_WORDS)
