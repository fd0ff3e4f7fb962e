"""Single values of the configuration: types, bounds, names, substitution, variables."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odek.config.keys import describe_type, table, variables
from odek.config.settings import UNUSED, Config
from odek.trust.risk import Risk
from tests.support.config_texts import HOME, KEY, made_of, problems_of


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"max_iterations": "abc"}', 'max_iterations: expected an integer from 1 to 1000, got "abc"'),
        ('{"max_iterations": 0}', "max_iterations: expected an integer from 1 to 1000, got 0"),
        ('{"max_iterations": true}', "max_iterations: expected an integer from 1 to 1000, got true"),
        ('{"max_iterations": 1.5}', "max_iterations: expected an integer from 1 to 1000, got 1.5"),
        ('{"max_iterations": null}', "max_iterations: expected an integer from 1 to 1000, got null"),
        ('{"no_color": 1}', "no_color: expected true or false, got 1"),
        ('{"model": ["x"]}', "model: expected text, got a list"),
        (
            '{"thinking": "hard"}',
            'thinking: expected one of "", disabled, enabled, low, medium, high, got "hard"',
        ),
        ('{"llm": 5}', "llm: expected an object, got 5"),
        (
            '{"llm": {"idle_timeout_seconds": 1e999}}',
            "llm.idle_timeout_seconds: expected a number above 0 and at most 86,400, got inf",
        ),
        (
            '{"llm": {"temperature": -1}}',
            "llm.temperature: expected a number from 0 to 2, or null, got -1",
        ),
        ('{"tools": {"disabled": "shell"}}', 'tools.disabled: expected a list of texts, got "shell"'),
        ('{"tools": {"disabled": ["a", 1]}}', "tools.disabled[1]: expected text, got 1"),
        (
            '{"dangerous": {"denylist": [""]}}',
            'dangerous.denylist[0]: expected text that is not empty, got ""',
        ),
        (
            '{"dangerous": {"classes": {"install": "maybe"}}}',
            'dangerous.classes.install: expected one of allow, prompt, deny, got "maybe"',
        ),
        (
            '{"dangerous": {"classes": {"blocked": "allow"}}}',
            "dangerous.classes.blocked: cannot be changed; remove it",
        ),
        (
            '{"prices": {"m": {"input": 1}}}',
            "prices.m.output: missing; expected a number from 0 to 1,000,000",
        ),
        (
            '{"base_url": "host:80"}',
            'base_url: expected an http or https URL such as http://localhost:11434/v1, got "host:80"',
        ),
        ('{"model": "a\\u0000b"}', "model: the text holds a NUL character"),
        ('{"model": "\\ud800"}', "model: the text holds half of a surrogate pair"),
    ],
)
def test_a_wrong_value_is_named_with_what_was_expected(text: str, line: str) -> None:
    """One line tells the file, the key, the expectation and the value."""
    assert problems_of(home=text) == [f"{HOME}: {line}"]


@pytest.mark.parametrize("given", ["host:80", "ftp://host", "http://ho st/v1", "http://h:99999", "http://"])
def test_what_is_no_address_is_refused_in_every_section(given: str) -> None:
    """One line shows what an address looks like, and what is there."""
    text = msgspec.json.encode({"embedding": {"base_url": given}, "guard": {"url": given}}).decode()
    assert problems_of(home=text) == [
        f'{HOME}: {key}: expected an http or https URL such as {example}, got "{given}"'
        for key, example in (
            ("embedding.base_url", "http://localhost:11434/v1"),
            ("guard.url", "http://127.0.0.1:8080/detect"),
        )
    ]


@pytest.mark.parametrize("given", [" http://host/v1", "http://host/v1\n", "\t${ROOT} "])
def test_blanks_around_an_address_are_no_part_of_it(given: str) -> None:
    """Files of variables leave a line end behind, and people paste; every address is read alike."""
    text = msgspec.json.encode(
        {"base_url": given, "embedding": {"base_url": given}, "guard": {"long_url": given}}
    ).decode()
    config = made_of(home=text, environ={"ROOT": "http://host/v1"}).config
    assert {config.base_url, config.embedding.base_url, config.guard.long_url} == {"http://host/v1"}
    assert made_of(environ={"ODEK_BASE_URL": " "}).config.base_url == ""


@pytest.mark.parametrize(
    ("text", "guess"),
    [
        ('{"max_iteration": 1}', "max_iteration: unknown key; did you mean max_iterations?"),
        ('{"modle": "m"}', "modle: unknown key; did you mean model?"),
        ('{"maxIterations": 1}', "maxIterations: unknown key; did you mean max_iterations?"),
        ('{"llm": {"max_retrys": 1}}', "llm.max_retrys: unknown key; did you mean llm.max_retries?"),
        ('{"facts_limit_user": 1}', "facts_limit_user: unknown key; did you mean memory.facts_limit_user?"),
        ('{"limits": {}}', "limits: unknown key; did you mean budget?"),
        ('{"qqqq": 1}', "qqqq: unknown key; `odek config show` lists every key"),
    ],
)
def test_an_unknown_key_is_an_error_with_the_nearest_known_one(text: str, guess: str) -> None:
    """A slip of the hand is recognised, whatever its letter case and level."""
    assert problems_of(home=text) == [f"{HOME}: {guess}"]


def test_the_risk_classes_are_those_of_the_policy() -> None:
    """Every class that a call can have can be set, and no other."""
    classes = ", ".join(f'"{risk.label}": "deny"' for risk in Risk)

    assert len(
        made_of(home=f'{{"dangerous": {{"classes": {{{classes}}}}}}}').config.dangerous.classes
    ) == len(Risk)
    (line,) = problems_of(home='{"dangerous": {"classes": {"x": "deny"}}}')
    assert set(line.split("risk classes ")[1].split(", ")) == {risk.label for risk in Risk}


def test_an_unknown_risk_class_is_an_error() -> None:
    """A misspelt class does not leave the real one at its default in silence."""
    (line,) = problems_of(home='{"dangerous": {"classes": {"destrutive": "deny"}}}')

    assert line.startswith(f"{HOME}: dangerous.classes.destrutive: unknown; expected the risk classes safe, ")


def test_all_problems_of_a_file_come_in_one_error() -> None:
    """Five are shown, the number of the others is said."""
    text = '{"a1": 1, "a2": 1, "a3": 1, "model": 1, "sandbox": 1, "system": 1, "api_key": 1}'

    lines = problems_of(home=text)

    assert len(lines) == 6
    assert lines[3] == f"{HOME}: model: expected text, got 1"
    assert lines[-1] == "… and 2 more"


def test_control_characters_of_a_file_do_not_reach_the_terminal() -> None:
    """Keys and values are shown with their control characters written out."""
    lines = problems_of(home='{"\\u001b[2J": 1, "thinking": "\\u001b]0;x\\u0007\\n"}')

    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize("path", sorted(UNUSED))
def test_keys_of_earlier_installations_are_accepted_and_named(path: str) -> None:
    """What this version does not use is no error, and is not ignored in silence."""
    section, _, name = path.rpartition(".")
    text = f'{{"{section}": {{"{name}": {{"x": 1}}}}}}' if section else f'{{"{name}": {{"x": 1}}}}'

    resolved = made_of(home=text)

    assert resolved.config == Config()
    assert resolved.notices == (f"{HOME}: not used by this version: {path}",)


def test_the_schema_reference_of_an_editor_is_no_unknown_key() -> None:
    """``$schema`` at the top is accepted."""
    assert made_of(home='{"$schema": "./schema.json"}').notices == ()


def test_references_become_the_values_of_variables() -> None:
    """``${NAME}`` works inside every text, also of lists and objects; the keys stay."""
    resolved = made_of(
        home='{"model": "${A}-${B}", "tools": {"disabled": ["x${A}"]}, "system": "${E}"}',
        secrets="B=two",
        environ={"A": "one", "E": ""},
    )

    assert resolved.config.model == "one-two"
    assert resolved.config.tools.disabled == ("xone",)
    assert resolved.config.system == ""


def test_a_value_that_was_substituted_is_not_looked_into_again() -> None:
    """A variable whose value looks like a reference is taken as it is."""
    assert made_of(home='{"model": "${A}"}', environ={"A": "${B}"}).config.model == "${B}"


@settings(max_examples=60)
@given(st.text("$ab{}1_ ").filter(lambda text: "${a" not in text and "${b" not in text and "${_" not in text))
def test_any_other_dollar_survives_byte_for_byte(text: str) -> None:
    """Dollars that begin no reference are left alone."""
    assert made_of(home=msgspec.json.encode({"system": text}).decode()).config.system == text


def test_an_undefined_variable_is_an_error() -> None:
    """It names the file, the key and the variable."""
    assert problems_of(home='{"llm": {}, "model": "x${NOPE}"}') == [
        f"{HOME}: model: ${{NOPE}} is not set; set it in the environment or in secrets.env"
    ]


def test_an_error_never_shows_what_a_reference_stands_for() -> None:
    """A secret in the wrong place is not printed."""
    (line,) = problems_of(home='{"thinking": "${TOKEN}"}', secrets=f"TOKEN={KEY}")

    assert line.endswith('got "${TOKEN}"')


@pytest.mark.parametrize(
    ("name", "text", "path", "value"),
    [
        ("ODEK_MODEL", "m", "model", "m"),
        ("ODEK_MODEL", "null", "model", "null"),
        ("ODEK_MAX_ITER", " 7 ", "max_iterations", 7),
        ("ODEK_MAX_ITERATIONS", "7", "max_iterations", 7),
        ("ODEK_SANDBOX", "on", "sandbox", True),
        ("ODEK_NO_COLOR", "TRUE", "no_color", True),
        ("ODEK_NO_AGENTS", "0", "no_agents", False),
        ("ODEK_SYSTEM", "be ${KIND}", "system", "be ${KIND}"),
        ("ODEK_INTERACTION_MODE", "verbose", "interaction_mode", "verbose"),
        ("ODEK_SHELL_TIMEOUT_SECONDS", "2.5", "shell.timeout_seconds", 2.5),
        ("ODEK_SHELL_TIMEOUT_SECONDS", "5", "shell.timeout_seconds", 5.0),
        ("ODEK_LLM_MAX_TOKENS", "null", "llm.max_tokens", None),
        ("ODEK_LLM_MAX_TOKENS", "12", "llm.max_tokens", 12),
        ("ODEK_TOOLS_ENABLED", "shell, read_file,", "tools.enabled", ("shell", "read_file")),
    ],
)
def test_a_variable_is_read_by_the_type_of_its_key(name: str, text: str, path: str, value: Any) -> None:
    """Numbers, truth values, null and lists have a text form."""
    found: Any = made_of(environ={name: text}).config
    for part in path.split("."):
        found = getattr(found, part)

    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("ODEK_MAX_ITER", "abc", 'an integer from 1 to 1000, got "abc"'),
        ("ODEK_MAX_ITER", "1e2", 'an integer from 1 to 1000, got "1e2"'),
        ("ODEK_MAX_ITER", "5000", "an integer from 1 to 1000, got 5000"),
        ("ODEK_MAX_ITER", "9" * 5000, "an integer from 1 to 1000, got "),
        ("ODEK_SANDBOX", "maybe", 'true or false, got "maybe"'),
        ("ODEK_SHELL_TIMEOUT_SECONDS", "nan", 'a number above 0 and at most 3600, got "nan"'),
        ("ODEK_SHELL_TIMEOUT_SECONDS", "1e99", "a number above 0 and at most 3600, got 1e+99"),
        ("ODEK_API_KEY", "two words", "printable ASCII without spaces, got something else (not shown)"),
    ],
)
def test_a_wrong_variable_is_named(name: str, text: str, expected: str) -> None:
    """The error starts with the variable's name; a key is not shown."""
    (line,) = problems_of(environ={name: text})

    assert line.startswith(f"{name}: expected {expected}")
    assert len(line) < 120


def test_the_special_name_of_a_variable_wins_over_the_general_one() -> None:
    """``ODEK_MAX_ITER`` is stronger than ``ODEK_MAX_ITERATIONS``, in any order."""
    both = {"ODEK_MAX_ITER": "3", "ODEK_MAX_ITERATIONS": "4"}

    assert made_of(environ=both).config.max_iterations == 3
    assert made_of(environ=dict(reversed(both.items()))).config.max_iterations == 3


def test_an_unknown_variable_is_a_notice() -> None:
    """Misspelt names get a guess, those of other versions are named, ODEK_HOME is known."""
    names = ["ODEK_MODLE", "ODEK_SANDBOX_MEMORY", "ODEK_SKILLS_LEARN", "ODEK_ZZZ", "ODEK_HOME"]

    assert made_of(environ=dict.fromkeys(names, "x")).notices == (
        "environment: ODEK_MODLE is not known; did you mean ODEK_MODEL?",
        "environment: ODEK_ZZZ is not known; it is ignored",
        "environment: not used by this version: ODEK_SANDBOX_MEMORY, ODEK_SKILLS_LEARN",
    )


def test_an_empty_variable_sets_nothing() -> None:
    """An empty text is as good as no variable, for any type."""
    assert made_of(environ=dict.fromkeys(variables(), "")).config == Config()


def test_flags_are_checked_like_everything_else() -> None:
    """The error names the flag."""
    assert problems_of(flags={"max_iterations": 0, "model": None}) == [
        "--max-iter: expected an integer from 1 to 1000, got 0"
    ]


def test_every_number_has_bounds() -> None:
    """No numeric key accepts a value without any limit."""
    for key in table().values():
        expected = describe_type(key.annotation)
        if not expected.startswith(("a number", "an integer")):
            continue
        text = str(10**17)
        for name in reversed(key.path.split(".")):
            text = f'{{"{name}": {text}}}'
        (line,) = problems_of(home=text)
        assert line == f"{HOME}: {key.path}: expected {expected}, got {10**17}"


def test_variables_of_different_keys_do_not_collide() -> None:
    """Each variable sets exactly one key, and every key with a text form has one."""
    names = [key.variable for key in table().values() if key.variable]

    assert len(names) == len(set(names))
    assert all(variables()[name].variable == name for name in names)
    assert "ODEK_DANGEROUS_ALLOWLIST" not in variables()
