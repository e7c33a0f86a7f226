"""What every test shares: how hypothesis searches."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# Compiled code is slow on its first call and fast after it, so a deadline per example says nothing.
settings.register_profile(
    "default", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("default")
