"""ament_python package; also installable with pip alone (see README.md)."""
from pathlib import Path

from setuptools import find_packages, setup

NAME = "twolink_dynamics"
DATA = ("urdf", "launch", "config", "rviz")

URDF = ["urdfdom-py>=1.2"]
ROS = ["ros-rclpy", "ros-rmw-fastrtps-cpp", "ros-rcl-interfaces", "ros-sensor-msgs", "ros-std-msgs", "ros-std-srvs",
       "ros-geometry-msgs", "ros-trajectory-msgs", "ros-diagnostic-msgs", "ros-visualization-msgs",
       "ros-rosgraph-msgs"]
FAST = ["llvmlite>=0.44"]
VIEWER = ["viser==1.1.*"]
PLOT = ["matplotlib>=3.6"]
IDENTIFY = ["PyYAML>=5.4"]
BAGS = ["rosbags>=0.10", "mcap>=1.1", "mcap-ros2-support>=0.5"]
TEST = ["pytest>=7.4", "pytest-timeout", "hypothesis>=6", "mpmath", "ruff==0.17.*", "wheel"]
ORACLES = ["pin>=3", "mujoco>=3.1", "example-robot-data>=4"]
COLCON = ["colcon-core", "colcon-ros", "colcon-python-setup-py", "colcon-common-extensions", "catkin_pkg"]
BROWSER = ["playwright>=1.40"]

setup(
    name=NAME,
    version="0.1.0",
    packages=find_packages(include=[NAME, f"{NAME}.*"]),
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (f"share/{NAME}", ["package.xml"]),
        *[(f"share/{NAME}/{folder}", sorted(str(p) for p in Path(folder).glob("*") if p.is_file())) for folder in DATA],
    ],
    python_requires=">=3.10",
    install_requires=["numpy>=1.23", "scipy>=1.9", "sympy>=1.10"],
    # Inside a ROS install all of `urdf` and `ros` is there already: `pip install .` overrides none of it.
    extras_require={
        "urdf": URDF,
        "ros": URDF + ROS,
        "fast": FAST,
        "viewer": VIEWER,
        "plot": PLOT,
        "bags": BAGS,
        "identify": IDENTIFY,
        "demo": URDF + ROS + FAST + VIEWER + PLOT + BAGS + IDENTIFY,
        "test": URDF + ROS + FAST + VIEWER + PLOT + BAGS + IDENTIFY + TEST + ORACLES + COLCON + BROWSER,
    },
    zip_safe=True,
    maintainer="twolink_dynamics maintainers",
    maintainer_email="maintainers@twolink-dynamics.example",
    description="Lagrangian dynamics, control and simulation of robot arms described by a URDF.",
    license="Apache-2.0",
    entry_points={
        "console_scripts": [
            f"twolink = {NAME}.cli:main",
            f"simulator = {NAME}.nodes.simulator_node:main",
            f"dynamics = {NAME}.nodes.dynamics_node:main",
            f"viewer = {NAME}.nodes.viewer_node:main",
            f"markers = {NAME}.nodes.markers_node:main",
        ],
    },
)
