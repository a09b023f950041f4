"""A controller of your own as a ROS 2 node: gravity compensation and a spring towards the start, in thirty lines.

Start an arm first, e.g. `ros2 launch twolink_dynamics simulate.launch.py` or `ros2 run twolink_dynamics simulator
--ros-args -p urdf:=twolink`, then run this file.
"""
import numpy as np
import rclpy
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from twolink_dynamics import Dynamics, load_urdf
from twolink_dynamics.resources import find_urdf


class Spring(Node):
    """Holds the arm where it was first seen, softly."""

    def __init__(self):
        super().__init__("spring")
        self.dynamics = Dynamics(load_urdf(find_urdf("twolink")))
        self.rest = None
        self.efforts = self.create_publisher(Float64MultiArray, "effort_controller/commands", 1)
        self.create_subscription(JointState, "joint_states", self.step, qos_profile_sensor_data)

    def step(self, message):
        """One joint state in, one effort command out."""
        order = [message.name.index(name) for name in self.dynamics.arm.joint_names]
        q, qd = np.array(message.position)[order], np.array(message.velocity)[order]
        if self.rest is None:
            self.rest = q
        stiffness, damping = 20.0, 4.0  # [N m/rad], [N m s/rad]
        tau = self.dynamics.gravity(q) + stiffness * (self.rest - q) - damping * qd
        self.efforts.publish(Float64MultiArray(data=tau.tolist()))


def main():
    """Run until Ctrl-C."""
    rclpy.init()
    try:
        rclpy.spin(Spring())
    except (KeyboardInterrupt, rclpy.executors.ExternalShutdownException):
        pass


if __name__ == "__main__":
    main()

# Try next: replace the spring by twolink_dynamics.control.Impedance and push the tip in the viewer.
