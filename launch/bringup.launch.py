"""A simulated arm with its controller: simulator, dynamics, robot_state_publisher, and on request RViz or the web
viewer.

    ros2 launch twolink_dynamics bringup.launch.py scenario:=push rviz:=true
"""
from launch.actions import DeclareLaunchArgument, ExecuteProcess
from launch.conditions import IfCondition
from launch.substitutions import Command, LaunchConfiguration, PathJoinSubstitution, PythonExpression
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from launch import LaunchDescription

PACKAGE = "twolink_dynamics"
SCENARIOS = ["tracking", "push", "wall", "flexible", "payload", "four_bar", "five_bar"]


def generate_launch_description():
    """One declarative list."""
    share = FindPackageShare(PACKAGE)
    setting = LaunchConfiguration
    its_arm = PythonExpression(["'", setting("scenario"), ".urdf' if '", setting("scenario"),
                                "' in ('four_bar', 'five_bar') else 'twolink.urdf'"])
    description = {"robot_description": ParameterValue(
        Command([setting("read_with"), ' "', setting("urdf"), '"']), value_type=str)}
    common = {"use_sim_time": ParameterValue(setting("use_sim_time"), value_type=bool),
              "frame_prefix": ParameterValue(setting("frame_prefix"), value_type=str)}
    scenario = PathJoinSubstitution([share, "config", PythonExpression(["'scenario_", setting("scenario"), ".yaml'"])])
    return LaunchDescription([
        DeclareLaunchArgument("scenario", default_value="tracking", choices=SCENARIOS,
                              description="demonstration whose parameters both nodes get"),
        DeclareLaunchArgument("play", default_value="true",
                              description="perform the scenario's script and print its verdict"),
        DeclareLaunchArgument("urdf", default_value=PathJoinSubstitution([share, "urdf", its_arm]),
                              description="path of the arm's URDF (default: the scenario's arm)"),
        DeclareLaunchArgument("read_with", default_value="cat",
                              description="command that prints the URDF: cat, or xacro for a xacro file"),
        DeclareLaunchArgument("controller", default_value="",
                              description="law that drives: off, gravity_compensation, computed_torque, pd_gravity, "
                                          "impedance (default: the scenario's)"),
        DeclareLaunchArgument("namespace", default_value="", description="namespace of all nodes"),
        DeclareLaunchArgument("frame_prefix", default_value="", description="put before every frame_id"),
        DeclareLaunchArgument("use_sim_time", default_value="false",
                              description="take time from /clock, which the simulator then publishes"),
        DeclareLaunchArgument("rviz", default_value="false", description="start RViz"),
        DeclareLaunchArgument("viewer", default_value="false", description="start the web viewer (needs viser)"),
        Node(package=PACKAGE, executable="simulator", namespace=setting("namespace"), output="screen",
             parameters=[PathJoinSubstitution([share, "config", "simulator.yaml"]), scenario, description, common,
                         {"publish_clock": ParameterValue(setting("use_sim_time"), value_type=bool)}]),
        Node(package=PACKAGE, executable="dynamics", namespace=setting("namespace"), output="screen",
             condition=IfCondition(PythonExpression(["'", setting("controller"), "' == ''"])),
             parameters=[PathJoinSubstitution([share, "config", "dynamics.yaml"]), scenario, description, common]),
        Node(package=PACKAGE, executable="dynamics", namespace=setting("namespace"), output="screen",
             condition=IfCondition(PythonExpression(["'", setting("controller"), "' != ''"])),
             parameters=[PathJoinSubstitution([share, "config", "dynamics.yaml"]), scenario, description, common,
                         {"controller": ParameterValue(setting("controller"), value_type=str)}]),
        Node(package="robot_state_publisher", executable="robot_state_publisher", namespace=setting("namespace"),
             parameters=[description, common]),
        Node(package="rviz2", executable="rviz2", namespace=setting("namespace"),
             condition=IfCondition(setting("rviz")),
             arguments=["-d", PathJoinSubstitution([share, "rviz", "twolink.rviz"])],
             parameters=[{"use_sim_time": ParameterValue(setting("use_sim_time"), value_type=bool)}]),
        Node(package=PACKAGE, executable="markers", namespace=setting("namespace"),
             condition=IfCondition(setting("rviz")),
             parameters=[description, common]),
        Node(package=PACKAGE, executable="viewer", namespace=setting("namespace"),
             condition=IfCondition(setting("viewer")), parameters=[description]),
        ExecuteProcess(cmd=["ros2", "run", PACKAGE, "twolink", "demo", "--attach", "--headless", "--scenario",
                            setting("scenario"), "--urdf", setting("urdf"), ["--namespace=", setting("namespace")]],
                       output="screen", condition=IfCondition(setting("play"))),
    ])
