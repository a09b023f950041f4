"""The web page: an arm one can see and touch, drawn with viser. Nothing here knows ROS; a Feed brings what is shown
and Actions take what the person does, so that a node, a test or a plain script can stand on the other side."""
from .feed import Actions, Feed

__all__ = ["Actions", "Feed"]
