"""Shared fixtures. Nothing here needs ROS or the optional engines."""
import os
from pathlib import Path

import pytest

from twolink_dynamics import load_urdf

REPOSITORY = Path(__file__).resolve().parent.parent

# ROS tests talk on this machine only, on a domain of this test process (set before anything imports rclpy).
os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
os.environ.setdefault("ROS_DOMAIN_ID", str(1 + os.getpid() % 100))


@pytest.fixture(scope="session")
def field_cases():
    """The folder of real users' URDFs, truth files and recordings; not part of the project."""
    folder = Path(os.environ.get("TWOLINK_FIELD_CASES", REPOSITORY.parent / "shared" / "field-cases"))
    if not folder.is_dir():
        pytest.skip("the field cases are not here (set TWOLINK_FIELD_CASES)")
    return folder


@pytest.fixture(scope="session")
def twolink():
    """The shipped arm."""
    return load_urdf(REPOSITORY / "urdf" / "twolink.urdf")
