"""The simulator alone, as a stand-in for an arm: it takes efforts and publishes joint states.

    ros2 launch twolink_dynamics simulate.launch.py urdf:=/path/to/arm.urdf
"""
from launch.actions import DeclareLaunchArgument
from launch.conditions import IfCondition
from launch.substitutions import Command, LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from launch import LaunchDescription

PACKAGE = "twolink_dynamics"


def generate_launch_description():
    """One declarative list."""
    share = FindPackageShare(PACKAGE)
    setting = LaunchConfiguration
    description = {"robot_description": ParameterValue(
        Command([setting("read_with"), ' "', setting("urdf"), '"']), value_type=str)}
    prefix = {"frame_prefix": ParameterValue(setting("frame_prefix"), value_type=str)}
    return LaunchDescription([
        DeclareLaunchArgument("urdf", default_value=PathJoinSubstitution([share, "urdf", "twolink.urdf"]),
                              description="path of the arm's URDF"),
        DeclareLaunchArgument("read_with", default_value="cat",
                              description="command that prints the URDF: cat, or xacro for a xacro file"),
        DeclareLaunchArgument("params_file", default_value=PathJoinSubstitution([share, "config", "simulator.yaml"]),
                              description="parameters of the simulator"),
        DeclareLaunchArgument("namespace", default_value="", description="namespace of all nodes"),
        DeclareLaunchArgument("frame_prefix", default_value="", description="put before every frame_id"),
        DeclareLaunchArgument("publish_clock", default_value="false", description="publish /clock"),
        DeclareLaunchArgument("rviz", default_value="false", description="start RViz"),
        Node(package=PACKAGE, executable="simulator", namespace=setting("namespace"), output="screen",
             parameters=[setting("params_file"), description, prefix,
                         {"publish_clock": ParameterValue(setting("publish_clock"), value_type=bool)}]),
        Node(package="robot_state_publisher", executable="robot_state_publisher", namespace=setting("namespace"),
             parameters=[description, prefix,
                         {"use_sim_time": ParameterValue(setting("publish_clock"), value_type=bool)}]),
        Node(package="rviz2", executable="rviz2", namespace=setting("namespace"),
             condition=IfCondition(setting("rviz")),
             arguments=["-d", PathJoinSubstitution([share, "rviz", "twolink.rviz"])]),
    ])
