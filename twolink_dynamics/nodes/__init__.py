"""ROS 2 nodes: thin, they convert messages and delegate to the ROS-free library. Only here is rclpy imported."""
