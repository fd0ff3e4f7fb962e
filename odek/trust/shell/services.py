"""Checks of the clients of services: what they remove there, and which secrets they show.

Each takes one ``Call`` and yields parts of its verdict; ``checks.py`` says when.
"""

import re
from collections.abc import Iterator

from odek.trust.risk import Part, Risk
from odek.trust.shell.call import Call

__all__ = ["cloud", "cluster_secrets"]

# Services are told what to do by a noun and a verb, in either order: among so many words.
_VERB_WORDS = 6
_REMOVES = re.compile(
    r"(.*[:-])?(delete|destroy|rm|remove|terminate|terminate-instances|purge|drop|rb|flushall|flushdb|wipe|reset|del)"
    r"|(delete|terminate|destroy|flush|purge|deregister|remove)-.*"
)
_SHOWS_SECRET = re.compile(
    r"configure get .*(secret|token|key)|configure export-credentials|get-secret-value|batch-get-secret-value"
    r"|get-parameters?\b.*--with-decryption|get-(session|federation)-token|assume-role|get-login(-password)?\b"
    r"|create-access-key|auth (\S+ )?print-(access|identity)-token|get-access-token|secrets? versions access"
    r"|secret (show|download|list)|secrets (get|download|list|pull)|auth:token|auth (\S+ )?token"
    r"|config:get|config vars|env (pull|get|list)|keys? list-keys|storage account keys|kv get"
    r"|(describe|get)-.*credentials"
)


def cloud(call: Call) -> Iterator[Part]:
    """Clients of services: deleting there is as final as here, and what they show may open the account."""
    words = [word.text.lower() for word in call.operands[:_VERB_WORDS]]
    removing = next((text for text in words if _REMOVES.fullmatch(text)), None)
    if removing is not None:
        yield call.part(Risk.DESTRUCTIVE, f"{call.name} {removing} removes what a service keeps")
        return
    deletes = any(item.value is not None and item.value.text.upper() == "DELETE" for item in call.arguments)
    if deletes or call.has("--delete", "--force-delete", "--purge"):
        yield call.part(Risk.DESTRUCTIVE, f"{call.name} is told to remove what a service keeps")
    if _SHOWS_SECRET.search(" ".join(word.text for word in call.words)):
        yield call.part(Risk.SYSTEM_WRITE, f"{call.name} shows credentials")
    for word in call.operands:
        if "/" in word.text or word.text.startswith("."):
            yield from call.reads(word)


def cluster_secrets(call: Call) -> Iterator[Part]:
    """Judge reading the secrets of a cluster with their values."""
    kinds = re.split("[,/]", call.operands[0].text.lower()) if call.operands else []
    shows = any(
        item.name in {"-o", "--output"} and item.value and item.value.text not in {"name", "wide"}
        for item in call.arguments
    )
    if shows and any(re.fullmatch(r"secrets?(\..*)?|all", kind) for kind in kinds):
        yield call.part(Risk.SYSTEM_WRITE, "shows the secrets of a cluster")
