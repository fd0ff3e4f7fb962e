"""From layers to one configuration."""

import json
from typing import Any

import msgspec
import pytest

from odek.config.layers import Resolved
from odek.config.settings import REFUSED_IN_PROJECTS, Config
from odek.errors import ConfigError
from tests.support.config_texts import HOME, KEY, PROJECT, SECRETS, made_of, problems_of

PROXY = "https://proxy.example.com/v1"


def test_nothing_given_is_all_defaults() -> None:
    """Without any source there are the defaults, no origins and no notices."""
    resolved = made_of()

    assert resolved == Resolved(Config(), {}, (), {}, ())


@pytest.mark.parametrize("top", range(1, 5))
def test_the_highest_layer_that_sets_a_key_wins(top: int) -> None:
    """Home, project, environment and flags override each other in this order."""
    layers: list[dict[str, Any]] = [
        {"home": '{"max_iterations": 1, "no_color": true}'},
        {"project": '{"max_iterations": 2}'},
        {"environ": {"ODEK_MAX_ITER": "3"}},
        {"flags": {"max_iterations": 4, "model": None}},
    ]
    given_sources: dict[str, Any] = {}
    for layer in layers[:top]:
        given_sources |= layer

    resolved = made_of(**given_sources)

    assert resolved.config == Config(max_iterations=top, no_color=True)
    names = [HOME, PROJECT, "ODEK_MAX_ITER", "--max-iter"]
    assert resolved.origins["max_iterations"].name == names[top - 1]
    assert resolved.origins["no_color"].name == HOME
    assert "model" not in resolved.origins


def test_sections_are_merged_key_by_key() -> None:
    """A layer that sets one key of a section leaves the others to the layers below."""
    resolved = made_of(
        home='{"llm": {"max_retries": 1, "temperature": 0.5}}',
        project='{"llm": {"max_retries": 2}}',
        environ={"ODEK_LLM_MAX_TOKENS": "100"},
    )

    llm = resolved.config.llm
    assert (llm.max_retries, llm.temperature, llm.max_tokens) == (2, 0.5, 100)
    assert llm.idle_timeout_seconds == Config().llm.idle_timeout_seconds


def test_every_kind_of_value_can_be_set_at_home() -> None:
    """Objects, lists, numbers, truth values, texts and null arrive with their types."""
    resolved = made_of(
        home="""{
            "prices": {"m": {"input": 1, "output": 2.5}},
            "dangerous": {"classes": {"install": "allow", "blocked": "deny"}, "allowlist": ["make test"]},
            "llm": {"connect_timeout_seconds": 5, "temperature": null},
            "memory": {"enabled": false}, "system": "be kind"
        }"""
    )

    config = resolved.config
    assert config.prices["m"].output == 2.5
    assert config.prices["m"].cached is None
    assert config.dangerous.classes["install"] == "allow"
    assert config.dangerous.allowlist == ("make test",)
    assert config.llm.connect_timeout_seconds == 5.0
    assert config.memory.enabled is False
    assert msgspec.convert(msgspec.to_builtins(config), Config) == config


@pytest.mark.parametrize(
    ("sources", "key", "origin"),
    [
        (
            {"environ": {"ODEK_API_KEY": "a1", "DEEPSEEK_API_KEY": "b", "OPENAI_API_KEY": "c"}},
            "a1",
            "ODEK_API_KEY",
        ),
        ({"environ": {"DEEPSEEK_API_KEY": "b", "OPENAI_API_KEY": "c"}}, "b", "DEEPSEEK_API_KEY"),
        ({"environ": {"DEEPSEEK_API_KEY": " ", "OPENAI_API_KEY": "c\n"}}, "c", "OPENAI_API_KEY"),
        ({"home": '{"api_key": "h"}', "environ": {"OPENAI_API_KEY": "c"}}, "h", HOME),
        ({"home": '{"api_key": ""}', "environ": {"OPENAI_API_KEY": "c"}}, "c", "OPENAI_API_KEY"),
        ({"home": '{"api_key": "h"}', "environ": {"ODEK_API_KEY": "a"}}, "a", "ODEK_API_KEY"),
        ({"secrets": "OPENAI_API_KEY=s"}, "s", "OPENAI_API_KEY in secrets.env"),
        ({"secrets": "ODEK_API_KEY=s", "environ": {"ODEK_API_KEY": "a"}}, "a", "ODEK_API_KEY"),
    ],
)
def test_the_api_key_is_the_first_that_is_set(sources: dict[str, Any], key: str, origin: str) -> None:
    """Variables are asked in their order; a key of the home file stands between them."""
    resolved = made_of(**sources)

    assert resolved.config.api_key == key
    assert resolved.origins["api_key"].name == origin


@pytest.mark.parametrize(
    ("sources", "base_url", "origin"),
    [
        ({"environ": {"OPENAI_API_KEY": "c", "OPENAI_BASE_URL": PROXY}}, PROXY, "OPENAI_BASE_URL"),
        ({"secrets": f"OPENAI_API_KEY=c\nOPENAI_BASE_URL={PROXY}"}, PROXY, "OPENAI_BASE_URL in secrets.env"),
        (
            {"environ": {"OPENAI_API_KEY": "c", "OPENAI_BASE_URL": PROXY, "ODEK_BASE_URL": "http://a/v1"}},
            "http://a/v1",
            "ODEK_BASE_URL",
        ),
        ({"environ": {"ODEK_API_KEY": "a", "OPENAI_API_KEY": "c", "OPENAI_BASE_URL": PROXY}}, "", ""),
        ({"environ": {"DEEPSEEK_API_KEY": "a", "OPENAI_BASE_URL": PROXY}}, "", ""),
        ({"environ": {"OPENAI_BASE_URL": PROXY}}, "", ""),
        ({"environ": {"OPENAI_API_KEY": "c", "OPENAI_BASE_URL": " "}}, "", ""),
    ],
)
def test_a_key_goes_where_its_own_variables_say(sources: dict[str, Any], base_url: str, origin: str) -> None:
    """``OPENAI_BASE_URL`` belongs to the key of ``OPENAI_API_KEY`` and to no other, and ours comes first."""
    resolved = made_of(**sources)

    assert resolved.config.base_url == base_url
    assert (resolved.origins["base_url"].name if base_url else "") == origin
    assert PROXY not in resolved.secrets


def test_an_address_that_goes_with_a_key_is_checked() -> None:
    """What is none is named with its variable, and the key goes nowhere."""
    with pytest.raises(ConfigError, match="OPENAI_BASE_URL: expected an http or https URL"):
        made_of(environ={"OPENAI_API_KEY": "c", "OPENAI_BASE_URL": "proxy:8080"})


def test_a_variable_that_is_set_empty_is_not_filled_from_secrets() -> None:
    """``ODEK_API_KEY= odek run`` goes without the key of secrets.env."""
    assert made_of(secrets=f"ODEK_API_KEY={KEY}", environ={"ODEK_API_KEY": ""}).config.api_key == ""


def test_tools_inherit_no_credential() -> None:
    """Key variables, their copies and what secrets.env brought stay out; the rest stays in."""
    resolved = made_of(
        home='{"api_key": "${CORP_LLM}"}',
        secrets=f"GITHUB_TOKEN={KEY}2\nPATH=/evil",
        environ={
            "CORP_LLM": KEY,
            "COPY": KEY,
            "HEADER": f"Bearer {KEY}",
            "DEEPSEEK_API_KEY": "d",
            "OPENAI_API_KEY": "o",
            "ODEK_TELEGRAM_BOT_TOKEN": "t",
            "ODEK_HOME": "/h",
            "ODEK_BUDGET_TOKENS": "5",
            "PATH": "/bin",
        },
    )

    assert resolved.environment == {"ODEK_HOME": "/h", "ODEK_BUDGET_TOKENS": "5", "PATH": "/bin"}
    assert set(resolved.secrets) == {KEY, f"{KEY}2"}


def test_settings_in_secrets_env_are_not_taken_for_secrets() -> None:
    """A model's name that stands in secrets.env need not be hidden."""
    resolved = made_of(secrets=f"ODEK_MODEL=deepseek-chat\nODEK_API_KEY={KEY}")

    assert resolved.secrets == (KEY,)


def test_the_home_directory_cannot_be_moved_from_within() -> None:
    """ODEK_HOME in secrets.env, which lies in that directory, is named as without effect."""
    assert made_of(secrets="ODEK_HOME=/x").notices == (
        f"{SECRETS}: ODEK_HOME has no effect in here; set it outside",
    )


def test_files_that_others_can_read_are_noticed() -> None:
    """The notice holds the command that mends it; a config file counts only if it holds a key."""
    assert made_of(secrets="A=b", exposed=True).notices == (
        f"{SECRETS} can be read by others: chmod 600 {SECRETS}",
    )
    assert made_of(home='{"model": "m"}', exposed=True).notices == ()
    assert made_of(home='{"api_key": "k"}', exposed=True).notices == (
        f"{HOME} holds a key and can be read by others: chmod 600 {HOME}",
    )


@pytest.mark.parametrize("name", sorted(REFUSED_IN_PROJECTS | {"base_url", "api_key", "system", "prices"}))
def test_a_project_cannot_set_what_it_could_abuse(name: str) -> None:
    """Whatever such a key holds, it is ignored and named."""
    section, _, key = name.rpartition(".")
    text = f'{{"{section}": {{"{key}": ["x"]}}}}' if section else f'{{"{key}": {{"x": "${{HOME}}"}}}}'

    resolved = made_of(project=text)

    assert resolved.config == Config()
    assert f"{PROJECT}: ignored, a project file may not set: {name}" in resolved.notices


def test_a_project_may_disable_tools_but_not_enable_them() -> None:
    """Its disabled tools are added to those of the person."""
    resolved = made_of(
        home='{"tools": {"enabled": ["shell", "glob"], "disabled": ["http_get"]}}',
        project='{"tools": {"enabled": ["http_get"], "disabled": ["shell", "http_get"]}}',
        flags={"tools.disabled": ["plan"]},
    )

    assert resolved.config.tools.enabled == ("shell", "glob")
    assert resolved.config.tools.disabled == ("http_get", "shell", "plan")
    assert resolved.origins["tools.disabled"].name == f"{HOME}, {PROJECT}, --no-tool"
    assert resolved.notices == (f"{PROJECT}: ignored, a project file may not set: tools.enabled",)


@pytest.mark.parametrize(
    ("home", "project", "result"),
    [(0, 5, 5), (10, 5, 5), (10, 20, 10), (10, 0, 10), (10, 10, 10), (0, 0, 0)],
)
def test_a_project_may_only_tighten_a_budget(home: int, project: int, result: int) -> None:
    """0 is no limit; what would widen the budget is ignored and named."""
    resolved = made_of(
        home=f'{{"budget": {{"tokens": {home}}}}}', project=f'{{"budget": {{"tokens": {project}}}}}'
    )

    assert resolved.config.budget.tokens == result
    widened = project != result
    assert bool(resolved.notices) == widened
    assert all("may only make stricter: budget.tokens" in notice for notice in resolved.notices)


@pytest.mark.parametrize(("home", "project", "result"), [(True, False, True), (False, True, True)])
def test_a_project_may_only_switch_the_sandbox_on(home: bool, project: bool, result: bool) -> None:
    """Off in the project does not undo on at home."""
    resolved = made_of(
        home=f'{{"sandbox": {str(home).lower()}}}', project=f'{{"sandbox": {str(project).lower()}}}'
    )

    assert resolved.config.sandbox is result
    assert bool(resolved.notices) is not project


@pytest.mark.parametrize(
    "name", ["OPENAI_API_KEY", "CORP_LLM", "AWS_SECRET_ACCESS_KEY", "npm_token", "DB", "BROUGHT"]
)
def test_a_project_cannot_send_a_secret_out_as_the_name_of_a_model(name: str) -> None:
    """Credentials, by name or by content, are refused, and not shown."""
    lines = problems_of(
        home='{"api_key": "${CORP_LLM}"}',
        project=f'{{"model": "m-${{{name}}}"}}',
        secrets=f"BROUGHT={KEY}",
        environ=dict.fromkeys(["OPENAI_API_KEY", "CORP_LLM", "AWS_SECRET_ACCESS_KEY", "npm_token"], KEY)
        | {"DB": f"postgres://u:{KEY}@host/db"},
    )

    assert lines == [f"{PROJECT}: model: ${{{name}}} may hold a secret, which a project file cannot use"]


def test_a_project_may_use_harmless_variables() -> None:
    """References to variables that are no secrets are substituted; unset ones are an error."""
    assert made_of(project='{"model": "${SIZE}"}', environ={"SIZE": "large"}).config.model == "large"
    assert problems_of(project='{"model": "${SIZE}"}') == [
        f"{PROJECT}: model: ${{SIZE}} is not set; set it in the environment"
    ]


@pytest.mark.parametrize(
    ("home", "of_memory", "of_atoms"),
    [
        ({}, "rp", "rp"),
        ({"embedding": {"provider": "static"}}, "static", "static"),
        ({"memory": {"embedding": {"provider": "static"}}}, "static", "static"),
        ({"embedding": {"provider": "static"}, "memory": {"embedding": {"provider": "rp"}}}, "rp", "rp"),
        ({"memory": {"extended": {"embedding": {"provider": "static"}}}}, "rp", "static"),
        (
            {"embedding": {"provider": "static"}, "memory": {"extended": {"embedding": {"dims": 3}}}},
            "static",
            "rp",
        ),
    ],
    ids=str,
)
def test_an_inner_embedding_is_the_outer_one_until_it_says_otherwise(
    home: dict[str, Any], of_memory: str, of_atoms: str
) -> None:
    """It counts as soon as one of its keys is set, also to say rp against a shared one."""
    resolved = made_of(home=json.dumps(home))

    assert resolved.config.memory.embedding.provider == of_memory
    assert resolved.config.memory.extended.embedding.provider == of_atoms


def test_every_key_is_kept_from_tools_and_texts() -> None:
    """Not that of the model's endpoint alone."""
    environ = {"EMBED_KEY": "embedding-key-1", "COPY": "x embedding-key-1 y", "PATH": "/bin"}
    home = {
        "memory": {"embedding": {"api_key": "${EMBED_KEY}"}, "extended": {"llm": {"api_key": "own-key-22"}}}
    }
    resolved = made_of(home=json.dumps(home), environ=environ)

    assert resolved.environment == {"PATH": "/bin"}
    assert {"embedding-key-1", "own-key-22"} <= set(resolved.secrets)
