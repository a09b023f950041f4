"""The dynamics node alone, for a real arm or Gazebo; it drives only after `~/enable`.

    ros2 launch twolink_dynamics control.launch.py effort_topic:=/forward_effort_controller/commands
    ros2 service call /dynamics/enable std_srvs/srv/SetBool "{data: true}"
"""
from launch.actions import DeclareLaunchArgument
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from launch import LaunchDescription

PACKAGE = "twolink_dynamics"


def generate_launch_description():
    """One declarative list."""
    share = FindPackageShare(PACKAGE)
    setting = LaunchConfiguration
    return LaunchDescription([
        DeclareLaunchArgument("urdf", default_value="",
                              description="path of the arm's URDF; empty: the topic robot_description"),
        DeclareLaunchArgument("tip", default_value="", description="link whose frame is the tip; empty: the only leaf"),
        DeclareLaunchArgument("controller", default_value="gravity_compensation",
                              description="law: off, gravity_compensation, computed_torque, pd_gravity, impedance"),
        DeclareLaunchArgument("enabled", default_value="false", description="drive at once, without ~/enable"),
        DeclareLaunchArgument("params_file", default_value=PathJoinSubstitution([share, "config", "hardware.yaml"]),
                              description="parameters of the dynamics node"),
        DeclareLaunchArgument("joint_states_topic", default_value="joint_states", description="where the states come "
                      "from"),
        DeclareLaunchArgument("effort_topic", default_value="effort_controller/commands",
                              description="where the efforts go"),
        DeclareLaunchArgument("namespace", default_value="", description="namespace of the node"),
        DeclareLaunchArgument("use_sim_time", default_value="false", description="take time from /clock (Gazebo)"),
        Node(package=PACKAGE, executable="dynamics", namespace=setting("namespace"), output="screen",
             parameters=[setting("params_file"), {
                 "urdf": ParameterValue(setting("urdf"), value_type=str),
                 "tip": ParameterValue(setting("tip"), value_type=str),
                 "controller": ParameterValue(setting("controller"), value_type=str),
                 "enabled": ParameterValue(setting("enabled"), value_type=bool),
                 "use_sim_time": ParameterValue(setting("use_sim_time"), value_type=bool)}],
             remappings=[("joint_states", setting("joint_states_topic")),
                         ("effort_controller/commands", setting("effort_topic"))]),
    ])
