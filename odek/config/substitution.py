"""``${NAME}`` in a text of a file becomes the variable's value; any other ``$`` stays."""

from collections.abc import Callable, Collection, Mapping

from odek.patterns import late_pattern

__all__ = ["looks_like_credential", "names_in", "substitute", "substitute_public"]

_REFERENCE = late_pattern(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_CREDENTIAL_NAME = late_pattern(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|PRIVATE|AUTH|COOKIE|PWD|DSN")
_WORKING_DIRECTORIES = {"PWD", "OLDPWD"}
_URL_WITH_USER = late_pattern(r"://[^/\s]*@")


def names_in(text: str) -> list[str]:
    """Return the variables that ``text`` refers to."""
    return _REFERENCE.findall(text)


def substitute(text: str, variables: Mapping[str, str]) -> str:
    """Return ``text`` with every reference replaced.

    Raises:
        ValueError: a variable is not set; the message is a sentence for the person.
    """

    def value_of(name: str) -> str:
        if name not in variables:
            raise ValueError(f"${{{name}}} is not set; set it in the environment or in secrets.env")
        return variables[name]

    return _replace(text, value_of)


def substitute_public(text: str, environ: Mapping[str, str], secret_names: Collection[str]) -> str:
    """Return ``text`` with references replaced, unless one may hold a secret.

    For texts that somebody else wrote and that leave the machine.

    Raises:
        ValueError: a variable is not set or may be a secret.
    """

    def value_of(name: str) -> str:
        value = environ.get(name, "")
        if name in secret_names or looks_like_credential(name) or _URL_WITH_USER.search(value):
            raise ValueError(f"${{{name}}} may hold a secret, which a project file cannot use")
        if name not in environ:
            raise ValueError(f"${{{name}}} is not set; set it in the environment")
        return value

    return _replace(text, value_of)


def looks_like_credential(name: str) -> bool:
    """Say whether a variable's name is one that secrets go by."""
    return name not in _WORKING_DIRECTORIES and bool(_CREDENTIAL_NAME.search(name.upper()))


def _replace(text: str, value_of: Callable[[str], str]) -> str:
    return _REFERENCE.sub(lambda match: value_of(match[1]), text)
