"""What holds for all tests."""

from hypothesis import HealthCheck, settings

# How long an example takes, and how long it takes to draw one, says how busy the machine is. What must be
# fast has a test of its own.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")
