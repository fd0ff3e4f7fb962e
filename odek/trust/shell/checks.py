"""Which check judges what the table of programs cannot say."""

from collections.abc import Callable, Iterator

import msgspec

from odek.trust.risk import Part
from odek.trust.shell import archives, builtins, files, git, machine, repeaters, scripts, services
from odek.trust.shell.call import Call

__all__ = ["CHECKS", "Check"]


class Check(msgspec.Struct, frozen=True):
    """A check and what of the table it takes the place of: its rule for operands, its class."""

    judge: Callable[[Call], Iterator[Part]]
    replaces_operands: bool = False
    replaces_class: bool = False


CHECKS: dict[str, Check] = {
    "alias": Check(builtins.alias, replaces_operands=True),
    "arch": Check(builtins.arch, replaces_operands=True),
    "archive": Check(archives.archive),
    "arithmetic": Check(builtins.arithmetic, replaces_operands=True),
    "awk": Check(scripts.awk),
    "bare": Check(machine.bare, replaces_class=True),
    "cd": Check(builtins.cd, replaces_operands=True),
    "chmod": Check(files.chmod, replaces_operands=True),
    "cloud": Check(services.cloud),
    "cluster_secrets": Check(services.cluster_secrets),
    "container": Check(builtins.container, replaces_operands=True),
    "copy": Check(files.copy),
    "cpio": Check(archives.cpio, replaces_operands=True),
    "crontab": Check(machine.crontab),
    "date": Check(machine.date),
    "dc": Check(scripts.dc),
    "dd": Check(files.dd, replaces_operands=True, replaces_class=True),
    "env": Check(builtins.env),
    "environment": Check(builtins.environment, replaces_operands=True),
    "fd": Check(repeaters.fd),
    "filter": Check(files.compress, replaces_class=True),
    "find": Check(repeaters.find, replaces_operands=True),
    "formatter": Check(files.formatter, replaces_operands=True, replaces_class=True),
    "git": Check(git.judge, replaces_operands=True, replaces_class=True),
    "grep": Check(files.grep),
    "hostname": Check(machine.hostname),
    "initializer": Check(builtins.initializer),
    "inplace": Check(files.inplace),
    "ip": Check(machine.ip),
    "jq": Check(scripts.jq),
    "kill": Check(machine.kill, replaces_class=True),
    "link": Check(files.link),
    "mktemp": Check(files.mktemp),
    "module": Check(builtins.module),
    "move": Check(files.move),
    "network_settings": Check(machine.network_settings),
    "number": Check(builtins.number),
    "odek": Check(machine.odek, replaces_class=True),
    "openssl": Check(machine.openssl),
    "parallel": Check(repeaters.parallel, replaces_operands=True),
    "patch": Check(archives.patch),
    "pkill": Check(machine.pkill),
    "plus": Check(machine.plus),
    "ps": Check(machine.ps),
    "python": Check(builtins.python, replaces_class=True),
    "rewrites": Check(scripts.rewrites),
    "rg": Check(files.tree_search, replaces_operands=True),
    "rm": Check(files.rm, replaces_operands=True, replaces_class=True),
    "rsync": Check(machine.rsync, replaces_operands=True),
    "rules": Check(machine.rules, replaces_class=True),
    "sed": Check(scripts.sed),
    "settings": Check(machine.settings, replaces_class=True),
    "shell": Check(builtins.shell, replaces_operands=True),
    "shopt": Check(builtins.shopt, replaces_class=True),
    "socat": Check(machine.socat),
    "sql": Check(scripts.sql),
    "tar": Check(archives.tar, replaces_operands=True),
    "trap": Check(builtins.trap, replaces_operands=True, replaces_class=True),
    "url": Check(machine.url),
    "xargs": Check(repeaters.xargs, replaces_operands=True),
    "zip": Check(archives.zip_archive, replaces_operands=True),
}
