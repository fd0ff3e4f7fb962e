"""What holds for all tests: nothing that a person has set up counts, nor how fast the machine is."""

import os
import re

from hypothesis import HealthCheck, settings

_OF_A_PERSON = re.compile(
    r"(?!ODEK_FUZZ_)(?:ODEK|OPENAI|DEEPSEEK|GIT)_.*|XDG_.*_HOME|(?i:.*_proxy)|EDITOR|VISUAL|PAGER"
    r"|COLUMNS|LINES|POSIXLY_CORRECT|BASH_ENV|ENV|CDPATH"
)
"""Variables that steer odek, or programs that tests have it start."""

for name in [name for name in os.environ if _OF_A_PERSON.fullmatch(name)]:
    del os.environ[name]
os.environ |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}

# How long an example takes, and how long it takes to draw one, says how busy the machine is. What must be
# fast has a test of its own.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")
