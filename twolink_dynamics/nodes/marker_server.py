"""Interactive markers without the C++ server: the protocol of the package interactive_markers in a small class.

Works on visualization_msgs alone, no node needed: `publish` takes InteractiveMarkerUpdate messages for ``<ns>/update``,
`feedback` gets those of ``<ns>/feedback``, `describe` fills answers of the service ``<ns>/get_interactive_markers``.

A client asks the service first and gets all markers with the sequence number they are at; then it follows updates,
each of which must carry the next number. Keep-alives repeat the current number, so that a client that missed an
update, or sees another server_id, starts over. (interactive_markers 2.x, interactive_marker_server.cpp)
"""
from __future__ import annotations

import copy

from visualization_msgs.msg import InteractiveMarkerFeedback as Feedback
from visualization_msgs.msg import InteractiveMarkerPose, InteractiveMarkerUpdate

OWNED = 1.0  # [s] after its last feedback during which a marker belongs to the client that sent it


class _Entry:
    def __init__(self, marker, on_feedback):
        self.marker, self.on_feedback = marker, on_feedback
        self.client, self.heard = "", float("-inf")


class InteractiveServer:
    """The markers of one namespace.

    server_id   text that tells this server from another (and from itself before a restart)
    publish     function of an InteractiveMarkerUpdate
    """

    def __init__(self, server_id, publish):
        self.server_id, self._publish = server_id, publish
        self.sequence = 0
        self._entries = {}
        self._new, self._moved, self._erased = {}, set(), set()

    # -- changes, sent by apply() -------------------------------------------------------------------------------------
    def insert(self, marker, on_feedback):
        """Adds or replaces an InteractiveMarker; `on_feedback(feedback)` is called for what people do with it."""
        self._new[marker.name] = _Entry(copy.deepcopy(marker), on_feedback)
        self._erased.discard(marker.name)

    def set_pose(self, name, pose, header=None):
        """Moves a marker (geometry_msgs/Pose); unknown names are ignored, they were erased meanwhile."""
        entry = self._new.get(name) or self._entries.get(name)
        if entry is not None:
            entry.marker.pose = pose
            if header is not None:
                entry.marker.header = header
            self._moved.add(name)

    def erase(self, name):
        """Removes a marker."""
        self._new.pop(name, None)
        if name in self._entries:
            self._erased.add(name)

    def apply(self):
        """Publishes all changes since the last call as one update; nothing where nothing changed."""
        if not (self._new or self._moved or self._erased):
            return
        update = InteractiveMarkerUpdate(type=InteractiveMarkerUpdate.UPDATE, erases=sorted(self._erased))
        for name in self._erased:
            del self._entries[name]
        self._entries.update(self._new)
        update.markers = [entry.marker for entry in self._new.values()]
        update.poses = [InteractiveMarkerPose(header=self._entries[name].marker.header, name=name,
                                              pose=self._entries[name].marker.pose)
                        for name in sorted(self._moved) if name in self._entries and name not in self._new]
        self._new, self._moved, self._erased = {}, set(), set()
        self.sequence += 1
        self._send(update)

    def keep_alive(self):
        """Repeats the current sequence number; call about twice a second."""
        self._send(InteractiveMarkerUpdate(type=InteractiveMarkerUpdate.KEEP_ALIVE))

    def _send(self, update):
        update.server_id, update.seq_num = self.server_id, self.sequence
        self._publish(update)

    # -- clients ------------------------------------------------------------------------------------------------------
    def describe(self, response):
        """Fills a GetInteractiveMarkers response: every marker, and the number of the last update they contain."""
        response.sequence_number = self.sequence
        response.markers = [entry.marker for entry in self._entries.values()]
        return response

    def feedback(self, message, now):
        """Takes an InteractiveMarkerFeedback at time `now` [s]. Returns False when it is refused: an unknown marker, or
        one that another client has hold of. A client that moves a marker knows where it is, so the new pose is kept
        for late joiners without telling everybody at once: the next `apply` does."""
        entry = self._entries.get(message.marker_name)
        if entry is None:
            return False
        if entry.client not in ("", message.client_id) and now - entry.heard < OWNED:
            return False
        entry.client, entry.heard = message.client_id, now
        if message.event_type == Feedback.POSE_UPDATE and message.header.frame_id == entry.marker.header.frame_id:
            entry.marker.pose = message.pose
            self._moved.add(message.marker_name)
        if message.event_type == Feedback.MOUSE_UP:
            entry.client = ""
        entry.on_feedback(message)
        return True
