"""Other ways to write a shell command that do the same: none of them may lower its class."""

import base64
import re
import shlex
from collections.abc import Callable, Sequence

from hypothesis import strategies as st

__all__ = ["disguised", "is_simple", "rewritten"]

# Ways to write one character that the shell undoes.
_CHARACTERS: tuple[Callable[[str], str], ...] = (
    lambda char: char,
    lambda char: "\\" + char,
    lambda char: f"'{char}'",
    lambda char: f'"{char}"',
    lambda char: f"''{char}",
    lambda char: f"$'\\x{ord(char):02x}'",
    lambda char: f"$'\\{ord(char):03o}'",
    lambda char: f"$'\\u{ord(char):04x}'",
    lambda char: f"{char}\\\n",
)
_GAPS = (" ", "  ", "\t", "${IFS}", "$IFS''", " \\\n ", "\\\n\t")
# What may stand before a simple command.
_WRAPPERS = (
    "sudo {}",
    "sudo -u root -- {}",
    "env A=b {}",
    "env -i {}",
    "nice -n 5 {}",
    "timeout -k 5 9 {}",
    "nohup setsid {}",
    "stdbuf -oL {}",
    "busybox {}",
    "flock /tmp/lock {}",
    "xargs -I@ {} < list.txt",
    "find . -maxdepth 0 -exec {} \\;",
    "watch {}",
)
# What the shell itself takes before a command, and no other program.
_WORDS_OF_THE_SHELL = (
    "{}",
    "command {}",
    "exec {}",
    "A=b {}",
    "! {}",
    "time {}",
    "coproc {}",
    "builtin command {}",
)
# What may stand around any command line.
_FRAMES: tuple[Callable[[str], str], ...] = (
    lambda text: f"true\n{text}",
    lambda text: f"# note\n{text}\n# end",
    lambda text: f"(\n{text}\n)",
    lambda text: f"{{\n{text}\n}}",
    lambda text: f"if true; then\n{text}\nfi",
    lambda text: f"if false; then :; else\n{text}\nfi",
    lambda text: f"for i in 1 2; do\n{text}\ndone",
    lambda text: f"while true; do\n{text}\nbreak\ndone",
    lambda text: f"case x in x)\n{text}\n;; esac",
    lambda text: f"f() {{\n{text}\n}}",
    lambda text: f"f() {{\n{text}\n}}\nf",
    lambda text: f'echo "$(\n{text}\n)"',
    lambda text: f"cat <(\n{text}\n)",
    lambda text: f"true && {{\n{text}\n}}",
    lambda text: f"false || {{\n{text}\n}}",
    lambda text: f"sh -c {shlex.quote(text)}",
    lambda text: f"bash -ec {shlex.quote(text)} name",
    lambda text: f"eval {shlex.quote(text)}",
    lambda text: f"echo {base64.b64encode(text.encode()).decode()} | base64 -d | sh",
    lambda text: f"bash <<< {shlex.quote(text)}",
    lambda text: f"printf %s {shlex.quote(text)} | bash",
    lambda text: f'code={shlex.quote(text)}; eval "$code"',
    lambda text: f"trap {shlex.quote(text)} EXIT",
    lambda text: f"sudo bash -c {shlex.quote(text)}",
    lambda text: f"ssh host {shlex.quote(text)}",
)
# No other program can run these.
_BUILTINS = frozenset({"set", "export", "alias", "cd", "eval", "source", ".", "read", "declare", "exec"})
_PLAIN = re.compile(r"[\w./:@%+,=-]+( [\w./:@%+,=-]+)*")


def is_simple(command: str) -> bool:
    """Whether ``command`` is one program and plain words, which can be written in other ways."""
    return _PLAIN.fullmatch(command) is not None and "=" not in command.split(maxsplit=1)[0]


@st.composite
def disguised(draw: st.DrawFn, commands: Sequence[str]) -> tuple[str, str]:
    """Draw one of ``commands``, and the same written, wrapped and nested in other ways."""
    command = draw(st.sampled_from(commands))
    text = command
    if is_simple(command):
        text = draw(st.sampled_from((_spelled, _by_variable, _by_function, _by_substitution)))(draw, command)
        if ";" not in text:
            is_program = command.split()[0] not in _BUILTINS
            for wrapper in draw(st.lists(st.sampled_from(_WRAPPERS), max_size=2)) if is_program else ():
                text = wrapper.replace("{}", text)
            text = draw(st.sampled_from(_WORDS_OF_THE_SHELL)).replace("{}", text)
    for frame in draw(st.lists(st.sampled_from(_FRAMES), max_size=2)):
        text = frame(text)
    return command, text


def _spelled(draw: st.DrawFn, command: str) -> str:
    words = ["".join(draw(st.sampled_from(_CHARACTERS))(char) for char in word) for word in command.split()]
    return draw(st.sampled_from(_GAPS)).join(words)


def _by_variable(draw: st.DrawFn, command: str) -> str:
    """Put one word into a variable, in one piece or two."""
    words = command.split()
    at = draw(st.integers(0, len(words) - 1))
    cut = draw(st.integers(0, len(words[at])))
    first, second = words[at][:cut], words[at][cut:]
    words[at] = draw(st.sampled_from(('"$x$y"', "${x}${y}", "${x:-z}${y}" if first else "$x$y")))
    return f"x={first!r}; y={second!r}; {' '.join(words)}"


def _by_function(draw: st.DrawFn, command: str) -> str:
    """Give the words to a function, by number or all at once."""
    program, *words = command.split()
    if draw(st.booleans()):
        return f'f() {{ {program} "$@"; }}; f {" ".join(words)}'
    named = " ".join(f'"${number}"' if number < 10 else word for number, word in enumerate(words, 1))
    return f"f() {{ {program} {named}; }}; f {' '.join(words)}"


def _by_substitution(draw: st.DrawFn, command: str) -> str:
    """Let a command print one word."""
    words = command.split()
    at = draw(st.integers(0, len(words) - 1))
    ways = ["$(printf %s {})", '"$(printf %s {})"', "`printf '%s' {}`"]
    if not words[at].startswith("-"):
        ways += ["$(echo {})", "`echo {}`", "$(echo -n {} | cat)", "$(cat <<< {})"]
    words[at] = draw(st.sampled_from(ways)).replace("{}", words[at])
    return " ".join(words)


@st.composite
def rewritten(draw: st.DrawFn, commands: Sequence[str]) -> tuple[str, str]:
    """Draw one of ``commands``, and the same as another honest person might write it."""
    command = draw(st.sampled_from(commands))
    text = command
    if is_simple(command):
        quotes = st.sampled_from(("{}", "'{}'", '"{}"'))
        words = [command.split()[0], *(draw(quotes).replace("{}", word) for word in command.split()[1:])]
        text = draw(st.sampled_from((" ", "  ", " \\\n  "))).join(words)
    frames = ("{}", "{}\n", "# note\n{}", "\n\n{}", "true\n{}", "(\n{}\n)", "{{\n{}\n}}", "set -e\n{}")
    frame = draw(st.sampled_from(frames)).replace("{{", "{").replace("}}", "}")
    return command, frame.replace("{}", text)
