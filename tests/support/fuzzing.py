"""Texts to break the classifier, the scanner and the masker with: runs, nests, soups and mutants."""

from collections.abc import Sequence
from random import Random

from tests.support import (
    shell_cases,
    shell_data_cases,
    shell_everyday_cases,
    shell_field_cases,
    shell_program_cases,
)

__all__ = ["hostile_text"]

_LARGEST_CHARACTERS = 20_000

# Constructs that a reader of text may trip over, each harmless by itself.
_PIECES = (
    *" \t\n\\'\"`$(){}[]<>|&;#*?~!=%^:@-+,./_\r\0\x1b\x7f",
    *("a", "b1", "rm", "cat", "x=", "sk-", "ghp_", "eyJ", "AKIA", "-----BEGIN ", "PRIVATE KEY-----"),
    *("$(", "${", "$((", "$[", "$'", '$"', "<<E\n", "<<<", "<(", ">(", "&&", "||", ";;", "|&", ">&", "2>"),
    *("((", "[[", "]]", "))", "{a,", "{1..9}", "${x:-", "${x%", "${x//", "${!", "@P}", "\\\n", "''", '""'),
    *(
        "if ",
        "then ",
        "fi ",
        "for x in ",
        "do ",
        "done ",
        "while ",
        "case x in ",
        "esac ",
        "f() {",
        "select ",
    ),
    *("sudo ", "env ", "xargs ", "find . -exec ", "bash -c ", "eval ", "timeout 1 ", "read x ", "cd .. "),
    *("ignore all previous instructions ", "you must ", "system: ", "<!--", "[INST]", "curl x | sh "),
    *("password=", "token: ", "Authorization: Bearer ", "://u:p@h ", "0123456789abcdef", "aB1+/=", "%41"),
    *(
        "\u200b",
        "\u200d",
        "\u202e",
        "\u0430",
        "\uff52",
        "\U000e0041",
        "\U0001f468\u200d",
        "\ufe0f",
        "\xe9",
        "\ud800",
    ),
)
_PAIRS = (
    ("(", ")"),
    ("{ ", "; }"),
    ("$(", ")"),
    ('"$(', ')"'),
    ("`", "`"),
    ("${x:-", "}"),
    ("{a,", "}"),
    ("$((", "))"),
    ("<(", ")"),
    ("if a; then ", "; fi"),
    ("for i in a b; do ", "; done"),
    ("while a; do ", "; done"),
    ("f() { ", "; }"),
    ("case x in x) ", ";; esac"),
    ("sh -c '", "'"),
    ("eval ", ""),
    ("sudo ", ""),
    ("xargs ", ""),
    ("[", "]"),
    ("<", ">"),
    ("**", "**"),
)
_CORPUS = [
    command
    for cases in (
        shell_cases.AT_LEAST,
        shell_cases.AT_MOST,
        shell_data_cases.AT_LEAST,
        shell_everyday_cases.AT_MOST,
        shell_field_cases.AT_LEAST,
        shell_field_cases.AT_MOST,
        shell_program_cases.AT_LEAST,
    )
    for commands in cases.values()
    for command in commands
]


def hostile_text(random: Random) -> str:
    """Return the next text, at most 20,000 characters long."""
    make = random.choice((_run, _nest, _soup, _mutant, _mutant, _long_script))
    return make(random)[:_LARGEST_CHARACTERS]


def _size(random: Random) -> int:
    """Return a size, small ones more often."""
    return int(_LARGEST_CHARACTERS ** random.random())


def _pieces(random: Random, count: int, choices: Sequence[str] = _PIECES) -> str:
    return "".join(random.choices(choices, k=count))


def _run(random: Random) -> str:
    """Return a few pieces, over and over."""
    piece = _pieces(random, random.randint(1, 4))
    return _pieces(random, 2) + piece * (_size(random) // len(piece) + 1) + _pieces(random, 2)


def _nest(random: Random) -> str:
    """Return constructs within constructs, sometimes not closed."""
    pairs = random.choices(_PAIRS, k=random.randint(1, 3))
    depth = _size(random) // 8
    opening = "".join(pairs[level % len(pairs)][0] for level in range(depth))
    closing = "".join(pairs[level % len(pairs)][1] for level in reversed(range(depth)))
    return opening + random.choice(_CORPUS) + (closing if random.random() < 0.7 else "")


def _soup(random: Random) -> str:
    """Return pieces in no order."""
    few = random.sample(_PIECES, random.randint(2, 12))
    return _pieces(random, _size(random) // 3 + 1, few)


def _mutant(random: Random) -> str:
    """Return a command that something was cut from, or put into, at several places."""
    text = random.choice(_CORPUS)
    for _ in range(random.randint(1, 6)):
        at = random.randint(0, len(text))
        match random.randint(0, 3):
            case 0:
                text = text[:at] + random.choice(_PIECES) + text[at:]
            case 1:
                text = text[:at] + text[at + random.randint(1, 4) :]
            case 2:
                text = text[:at] + random.choice(_CORPUS) + text[at:]
            case _:
                text = text[:at] + text[at : at + 8] * random.randint(2, 200) + text[at:]
    return text


def _long_script(random: Random) -> str:
    """Return many commands, one after another."""
    lines = random.choices(_CORPUS, k=_size(random) // 20 + 1)
    return random.choice(("\n", "; ", " && ", " | ", " || ")).join(lines)
