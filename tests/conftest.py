"""What holds for all tests."""

from __future__ import annotations

from hypothesis import settings

# How long an example takes says nothing on a machine that is shared; pytest-timeout ends what hangs.
settings.register_profile("shared-machine", deadline=None)
settings.load_profile("shared-machine")
