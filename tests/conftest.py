"""What all tests share: where the real data lies, and hypothesis settings without a clock."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "eutely", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("eutely")

DATA = Path(os.environ.get("EUTELY_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture(scope="session")
def data() -> Path:
    """Folder of the real data; the test is skipped where it is absent."""
    if not DATA.is_dir():
        pytest.skip(f"real data absent: no folder {DATA} (set EUTELY_DATA)")
    return DATA
