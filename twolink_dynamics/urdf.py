"""URDF text to Arm, and every refusal with a reason.

The text is untrusted: it is bounded, may hold no DOCTYPE, and no file it names is ever opened. It is first reduced
to what dynamics needs (links' inertials, joints), every number checked where the offender's name is known, and then
given to urdf_parser_py. Rules: docs/urdf.md.
"""
from __future__ import annotations

import codecs
import math
import re
import warnings as python_warnings
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from .arm import CONTINUOUS, KINDS, PRISMATIC, ROOT, Arm, Frame, Joint, Link, make_pose
from .errors import ModelError, TwolinkWarning, UrdfError, choices
from .kinematics import rotation_about, weightless_coordinate

MAX_BYTES = 4 * 1024 * 1024
MAX_JOINTS = 128  # moving ones: far above any arm, far below what would stall a node
MAX_LINKS = 2000  # fixed ones included
MAX_DEPTH = 200  # of nested XML elements
MAX_NAME = 200  # characters
MAX_NUMBER = 1e12  # of a length, mass, inertia, angle: beyond it is no robot, and squares stay far from overflow
ODD_CODECS = ("idna", "punycode", "undefined", "unicode_escape", "raw_unicode_escape", "utf_7")  # no text file's
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|infinity|nan)", re.ASCII | re.IGNORECASE)


def load_urdf(text_or_path, tip=None, gravity=(0.0, 0.0, -9.81), locked=None) -> Arm:
    """The Arm that a URDF describes.

    text_or_path   URDF text (str or bytes) or a path to it
    tip            name of the link whose frame is the tip; default: the only leaf link, else none is chosen
    gravity        (3,) [m/s²] in the root link's frame
    locked         {joint name: value [rad or m]}: joints held there, their subtrees welded on

    Remarks are issued as TwolinkWarning and kept in ``arm.warnings``. Raises UrdfError or ModelError, naming the
    link or joint, the value and the reason in one line.
    """
    text, remarks = _read(text_or_path)
    try:
        locked = dict(locked or {})
    except (TypeError, ValueError):
        raise UrdfError(f"locked: {shown(locked)} is no mapping of joint names to values") from None
    arm = _Builder(_parse(_reduced(text, remarks)), remarks, locked, tip, gravity).arm()
    for remark in arm.warnings:
        python_warnings.warn(remark, TwolinkWarning, stacklevel=2)
    return arm


def shown(value, limit=80):
    """Any value as one bounded line for a message; what cannot be printed is escaped."""
    text = value if isinstance(value, str) else repr(value)
    text = " ".join(text[:2 * limit].split())
    text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    return text if len(text) <= limit else f"{text[:limit]}..."


# -- text ------------------------------------------------------------------------------------------------------------
def _read(source):
    """(text, remarks) of URDF text, bytes or a file; nothing else is ever opened."""
    if isinstance(source, str) and "<" in source:
        return _bounded(source), []
    if isinstance(source, (str, bytes, bytearray)) and not source.strip():
        raise UrdfError("the URDF text is empty")
    if not isinstance(source, (bytes, bytearray)):
        try:
            with open(Path(source), "rb") as file:  # a pipe or /dev/stdin has no size to ask for: read, bounded
                source = file.read(MAX_BYTES + 1)
        except TypeError:
            raise UrdfError(f"load_urdf takes URDF text or a path, not {type(source).__name__}") from None
        except (OSError, ValueError) as error:
            raise UrdfError(f"cannot read URDF file '{shown(str(source), 200)}': "
                            f"{getattr(error, 'strerror', None) or error}") from None
    text, remarks = _decoded(bytes(_bounded(source)))
    if "<" not in text:
        raise UrdfError("this is not URDF text: it has no XML tag")
    return text, remarks


def _bounded(text):
    if len(text) > MAX_BYTES:
        raise UrdfError(f"the URDF text is longer than the {MAX_BYTES} bytes allowed")
    return text


def _decoded(raw):
    """(text, remarks) of bytes: by their byte order mark, else as the XML declaration says, else UTF-8."""
    if raw.startswith(codecs.BOM_UTF8):
        encoding = "utf-8"
    elif raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    else:
        declared = re.match(rb"\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9._-]{1,40})", raw)
        encoding = declared.group(1).decode().lower() if declared else "utf-8"
    try:
        if encoding.replace("-", "_") in ODD_CODECS:
            raise LookupError
        text = raw.decode(encoding)
        if "<" not in text and b"<" in raw:
            raise UnicodeError("there is no XML tag")
        return text, []
    except LookupError:
        raise UrdfError(f"unknown encoding '{encoding}' in the XML declaration") from None
    except ValueError as error:  # UnicodeError and the odd codec's own
        if encoding not in ("utf-8", "utf8"):
            raise UrdfError(f"the URDF text is not the {encoding} it declares: {shown(str(error))}") from None
    return raw.decode("utf-8", errors="surrogateescape"), []


def _without_surrogates(text, remarks):
    """Bytes that were no UTF-8 (kept by Python as lone surrogates) read as Latin-1, with a remark."""
    if not re.search("[\ud800-\udfff]", text):
        return text
    remarks.append("the text is not all UTF-8; the stray bytes are read as Latin-1")
    return re.sub("[\ud800-\udfff]", lambda match: chr(ord(match.group()) & 0xff), text)


def _local(tag):
    return tag.rsplit("}", 1)[-1] if isinstance(tag, str) else ""


class _BoundedTree(ElementTree.TreeBuilder):
    """Builds elements and refuses what an untrusted text must not have, as it comes."""

    depth = 0

    def doctype(self, name, pubid, system):
        raise UrdfError("a URDF must not have a <!DOCTYPE> or entities")

    def start(self, tag, attributes):
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise UrdfError(f"the URDF's elements are nested more than {MAX_DEPTH} deep")
        return super().start(tag, attributes)

    def end(self, tag):
        self.depth -= 1
        return super().end(tag)


def _xml(text, remarks):
    """The root element: declaration, BOM and leading blanks dropped, namespaces ignored, DOCTYPE and xacro refused."""
    text = re.sub(r"^[\s\ufeff]*(<\?xml.*?\?>)?", "", _without_surrogates(text, remarks), count=1, flags=re.DOTALL)
    comments = text.split("<!--")
    bare = comments[0] + "".join(part.partition("-->")[2] for part in comments[1:])
    if re.search(r"</?xacro:", bare):
        raise UrdfError(XACRO)
    parser = ElementTree.XMLParser(target=_BoundedTree())
    try:
        parser.feed(text)
        root = parser.close()
    except ElementTree.ParseError as error:
        if re.search(r"<!(DOCTYPE|ENTITY)", bare, re.IGNORECASE):
            raise UrdfError("a URDF must not have a <!DOCTYPE> or entities") from None
        raise UrdfError(f"the URDF is not well-formed XML: {shown(str(error))}") from None
    if _local(root.tag) != "robot":
        raise UrdfError(f"the root element is <{shown(_local(root.tag))}>, a URDF has <robot>")
    return root


XACRO = "this is a xacro file, not a URDF: run xacro first (xacro FILE.urdf.xacro > FILE.urdf)"


def _reduced(text, remarks):
    """A clean <robot> element that holds only what the dynamics need, all numbers checked."""
    source = _xml(text, remarks)
    robot = ElementTree.Element("robot", name=_name(source) if source.get("name") else "robot")
    seen = {"link": set(), "joint": set()}
    for element in source:
        kind = _local(element.tag)
        if kind not in seen or not (kind == "link" or element.get("type") is not None):
            continue  # transmission, ros2_control, gazebo, materials, ... and <joint> of other dialects
        if any("${" in value for child in element.iter() for value in child.attrib.values()):
            raise UrdfError(XACRO)
        name = _name(element)
        if name in seen[kind]:
            raise UrdfError(f"two {kind}s are named '{name}'")
        seen[kind].add(name)
        if len(seen[kind]) > MAX_LINKS:
            raise UrdfError(f"the URDF has more than {MAX_LINKS} {kind}s")
        (_reduced_link if kind == "link" else _reduced_joint)(robot, element, name, remarks)
    if not seen["link"]:
        raise UrdfError("the URDF has no <link>")
    return robot


def _name(element, attribute="name"):
    """A name fit for a message, a topic and a log: not empty, bounded, printable."""
    tag, name = _local(element.tag), element.get(attribute)
    if not name:
        raise UrdfError(f"a <{tag}> has no {attribute}")
    if len(name) > MAX_NAME or not name.isprintable():
        raise UrdfError(f"the <{tag}> '{shown(name)}': its {attribute} is longer than {MAX_NAME} characters or has "
                        "some that cannot be printed")
    return name


def _child(element, tag, where=None):
    """The only child of that tag, or None; raises UrdfError on a second one when `where` is given."""
    found = [child for child in element if _local(child.tag) == tag]
    if where and len(found) > 1:
        raise UrdfError(f"{where}: {len(found)} <{tag}> elements, one is allowed")
    return found[0] if found else None


def _numbers(where, element, attribute, count, default=None, bound=MAX_NUMBER):
    """`count` finite numbers of an attribute, as text that any parser reads alike."""
    text = element.get(attribute)
    if text is None:
        if default is None:
            raise UrdfError(f"{where}: <{_local(element.tag)}> has no '{attribute}'")
        return default
    words = text.split()
    given = f"{where}: {attribute}=\"{shown(text)}\""
    if len(words) != count or not all(NUMBER.fullmatch(word) for word in words):
        hint = " (decimals need a point, not a comma)" if "," in text else ""
        raise UrdfError(f"{given} is not {'a number' if count == 1 else f'{count} numbers'}{hint}")
    values = [float(word) for word in words]
    if not all(map(math.isfinite, values)):
        raise UrdfError(f"{given} is not finite")
    if max(map(abs, values)) > bound:
        raise UrdfError(f"{given} is beyond ±{bound:g}")
    return " ".join(map(repr, values))


def _origin(where, element, parent):
    origin = _child(element, "origin", where)
    if origin is not None:
        ElementTree.SubElement(parent, "origin", xyz=_numbers(where, origin, "xyz", 3, "0 0 0"),
                               rpy=_numbers(where, origin, "rpy", 3, "0 0 0"))


def _reduced_link(robot, element, name, remarks):
    link = ElementTree.SubElement(robot, "link", name=name)
    where = f"link '{name}'"
    inertial = _child(element, "inertial", where)
    if inertial is None:
        return
    out = ElementTree.SubElement(link, "inertial")
    _origin(where, inertial, out)
    mass, inertia = _child(inertial, "mass", where), _child(inertial, "inertia", where)
    if mass is None:
        raise UrdfError(f"{where}: <inertial> has no <mass>")
    ElementTree.SubElement(out, "mass", value=_numbers(where, mass, "value", 1))
    tensor = {key: "0.0" for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")}
    if inertia is None:
        remarks.append(f"{where}: <inertial> has no <inertia>; read as a point mass")
    else:
        tensor = {key: _numbers(where, inertia, key, 1, "0.0" if key in ("ixy", "ixz", "iyz") else None)
                  for key in tensor}
    ElementTree.SubElement(out, "inertia", tensor)


def _reduced_joint(robot, element, name, remarks):
    where = f"joint '{name}'"
    kind = element.get("type")
    if kind in ("floating", "planar"):
        raise UrdfError(f"{where}: type '{kind}' is not supported, an arm has a fixed base and joints of type "
                        f"{choices((*KINDS, 'fixed'))}")
    if kind not in (*KINDS, "fixed"):
        raise UrdfError(f"{where}: type '{shown(kind)}' is none of {choices((*KINDS, 'fixed'))}")
    joint = ElementTree.SubElement(robot, "joint", name=name, type=kind)
    for end in ("parent", "child"):
        link = _child(element, end, where)
        if link is None or not link.get("link"):
            raise UrdfError(f"{where}: no <{end} link=.../>")
        ElementTree.SubElement(joint, end, link=_name(link, "link"))
    _origin(where, element, joint)
    if kind == "fixed":
        return
    axis = _child(element, "axis", where)
    xyz = "1 0 0" if axis is None else _numbers(where, axis, "xyz", 3, "1 0 0")  # URDF's default is x
    length = math.hypot(*map(float, xyz.split()))
    if length < 1e-6:
        raise UrdfError(f"{where}: axis ({', '.join(f'{float(x):g}' for x in xyz.split())}) has no direction")
    if abs(length - 1.0) > 0.01:
        remarks.append(f"{where}: axis ({', '.join(f'{float(x):g}' for x in xyz.split())}) is not of unit length; its "
                       "direction is used")
    ElementTree.SubElement(joint, "axis", xyz=" ".join(repr(float(x) / length) for x in xyz.split()))
    # urdf_parser_py demands every attribute of <limit>: what is absent is written as 0, which here means "no limit"
    limit = _child(element, "limit", where)
    ElementTree.SubElement(joint, "limit", {
        key: "0.0" if limit is None else _numbers(where, limit, key, 1, "0.0", math.inf)
        for key in ("lower", "upper", "effort", "velocity")})
    dynamics = _child(element, "dynamics", where)
    if dynamics is not None:
        ElementTree.SubElement(joint, "dynamics", {
            key: _numbers(where, dynamics, key, 1, "0.0") for key in ("damping", "friction")})
    mimic = _child(element, "mimic", where)
    if mimic is not None:
        if not mimic.get("joint"):
            raise UrdfError(f"{where}: <mimic> names no joint")
        ElementTree.SubElement(joint, "mimic", joint=_name(mimic, "joint"),
                               multiplier=_numbers(where, mimic, "multiplier", 1, "1.0"),
                               offset=_numbers(where, mimic, "offset", 1, "0.0"))


def _parse(element):
    from urdf_parser_py.urdf import URDF
    try:
        return URDF.from_xml_string(ElementTree.tostring(element, encoding="unicode"))
    except Exception as error:  # the reduced text is checked, so this is a reader we do not know
        raise UrdfError(f"urdf_parser_py cannot read the URDF: {shown(str(error), 200)}") from None


# -- tree ------------------------------------------------------------------------------------------------------------
def rotation_from_rpy(rpy):
    """(3, 3) R = Rz(yaw) Ry(pitch) Rx(roll), URDF's fixed-axis roll, pitch, yaw [rad]."""
    roll, pitch, yaw = rpy
    return (rotation_about((0.0, 0.0, 1.0), yaw) @ rotation_about((0.0, 1.0, 0.0), pitch)
            @ rotation_about((1.0, 0.0, 0.0), roll))


def _pose(origin):
    if origin is None:
        return make_pose()
    return make_pose(rotation_from_rpy(origin.rpy or (0, 0, 0)), origin.xyz or (0, 0, 0))


class _Builder:
    """Walks the URDF's tree from its root, folding fixed joints into the moving link before them."""

    def __init__(self, robot, remarks, locked, tip, gravity):
        self.robot, self.locked, self.tip, self.gravity = robot, locked, tip, gravity
        self.remarks, self.lumped = remarks, []
        self.joints, self.bodies, self.frames = [], [], []  # moving joints, their lumped links, all links as frames
        self.urdf_links = {link.name: link for link in robot.links}
        self.children = {}  # link name -> its joints, in document order
        for joint in robot.joints:
            self.children.setdefault(joint.parent, []).append(joint)
        self.by_name = {joint.name: joint for joint in robot.joints}

    def arm(self):
        root = self._root()
        self._check_mimics()
        for name in self.locked:
            if name not in self.by_name or self.by_name[name].type == "fixed":
                movable = [joint.name for joint in self.robot.joints if joint.type != "fixed"]
                raise UrdfError(f"locked joint '{shown(name)}' is no moving joint; these move: {choices(movable)}")
            self._locked_value(self.by_name[name])
        self._walk(root)
        if not self.joints:
            raise UrdfError(f"robot '{self.robot.name}' has no moving joint")
        if len(self.joints) > MAX_JOINTS:
            raise UrdfError(f"robot '{self.robot.name}' has {len(self.joints)} moving joints, more than {MAX_JOINTS}")
        names = {frame.name for frame in self.frames}
        tips = tuple(frame.name for frame in self.frames if frame.name not in self.children)
        if self.tip is not None and (not isinstance(self.tip, str) or self.tip not in names):
            raise UrdfError(f"tip '{shown(self.tip)}' is no link; the links are {choices(sorted(names))}")
        arm = Arm(self.robot.name, self._coordinates(), tuple(self.bodies), tuple(self.frames), tips,
                  self.tip or (tips[0] if len(tips) == 1 else None), self.gravity, root,
                  warnings=tuple(self.remarks), lumped=tuple(self.lumped))
        for link in arm.links:
            self._judge_size(arm, link)
        idle = weightless_coordinate(arm)
        if idle is not None:
            raise ModelError(f"the mass matrix is singular in every pose: joint '{idle}' moves no inertia about its "
                             f"axis (give link '{self.by_name[idle].child}' or what it carries a mass)")
        return replace(arm, warnings=tuple(self.remarks))

    def _root(self):
        robot, links = self.robot, self.urdf_links
        parent_of = {}
        for joint in robot.joints:
            if joint.parent not in links and joint.parent == "world":
                self.remarks.append(f"joint '{joint.name}': parent link 'world' is not declared; taken as the root")
                links["world"] = Link("world", 0.0, np.zeros(3), np.zeros((3, 3)))
            for end, name in (("parent", joint.parent), ("child", joint.child)):
                if name not in links:
                    raise UrdfError(f"joint '{joint.name}': {end} link '{name}' is not declared; the links are "
                                    f"{choices(links)}")
            if joint.child in parent_of:
                raise UrdfError(f"link '{joint.child}' has two parents, joints '{parent_of[joint.child]}' and "
                                f"'{joint.name}': a loop, which a URDF tree cannot hold")
            parent_of[joint.child] = joint.name
        roots = [name for name in links if name not in parent_of]
        if not roots:
            raise UrdfError("the links form a loop: none of them is a root")
        if len(roots) > 1:
            raise UrdfError(f"the URDF has {len(roots)} root links, an arm has one: {choices(roots)}")
        reached, stack = set(), [roots[0]]
        while stack:
            name = stack.pop()
            reached.add(name)
            stack += [joint.child for joint in self.children.get(name, ())]
        if len(reached) < len(links):
            raise UrdfError(f"the links {choices(sorted(set(links) - reached))} form a loop apart from the root")
        return roots[0]

    def _check_mimics(self):
        for joint in self.robot.joints:
            visited = {joint.name}
            while joint.mimic is not None:
                leader = self.by_name.get(joint.mimic.joint)
                if leader is None or leader.type == "fixed":
                    raise UrdfError(f"joint '{joint.name}' mimics '{joint.mimic.joint}', which is no moving joint")
                if leader.name in visited:
                    raise UrdfError(f"joint '{joint.name}' mimics itself in a circle")
                if (leader.type == "prismatic") != (joint.type == "prismatic"):
                    self.remarks.append(f"joint '{joint.name}' ({joint.type}) mimics '{leader.name}' ({leader.type}): "
                                        "its multiplier carries units")
                visited.add(leader.name)
                joint = leader

    def _leader(self, joint):
        """(leading joint, multiplier, offset): variable = multiplier · leader + offset, through chains of mimics."""
        multiplier, offset = 1.0, 0.0
        while joint.mimic is not None and joint.name not in self.locked:
            factor = 1.0 if joint.mimic.multiplier is None else joint.mimic.multiplier
            shift = 0.0 if joint.mimic.offset is None else joint.mimic.offset
            multiplier, offset = multiplier * factor, offset + multiplier * shift
            joint = self.by_name[joint.mimic.joint]
        return joint, multiplier, offset

    def _locked_value(self, joint):
        """The value a joint is held at, directly or through the joint it mimics; None where it is free."""
        leader, multiplier, offset = self._leader(joint)
        if leader.name not in self.locked:
            return None
        try:
            value = float(self.locked[leader.name])
        except (TypeError, ValueError):
            value = math.nan
        if not math.isfinite(value):
            raise UrdfError(f"locked joint '{leader.name}': {shown(self.locked[leader.name])} is not a finite number")
        return multiplier * value + offset

    def _walk(self, root):
        stack = [(root, ROOT, make_pose(), None)]  # link, moving link it belongs to, its pose there, welding joint
        while stack:
            name, owner, pose, weld = stack.pop()
            body = self._body(name, judge=owner != ROOT)
            if weld is not None and owner != ROOT:
                self.bodies[owner] = self.bodies[owner].welded(body.moved(pose))
                self.lumped.append(f"'{name}' ({body.mass:g} kg) into '{self.bodies[owner].name}' through "
                                   f"joint '{weld.name}'")
            elif weld is None and owner != ROOT:
                self.bodies[owner] = body
            self.frames.append(Frame(name, owner, pose))
            for joint in reversed(self.children.get(name, ())):
                stack.append(self._step(joint, owner, pose))
            self._number(stack)

    def _step(self, joint, owner, pose):
        origin = pose @ _pose(joint.origin)
        held = None if joint.type == "fixed" else self._locked_value(joint)
        if joint.type == "fixed":
            return joint.child, owner, origin, joint
        if held is not None:
            axis = np.asarray(joint.axis, float)
            moved = (make_pose(translation=axis * held) if joint.type == PRISMATIC
                     else make_pose(rotation_about(axis, held)))
            return joint.child, owner, origin @ moved, joint
        return joint.child, (joint, owner, origin), make_pose(), None

    def _number(self, stack):
        """Give the joint that is walked next its place in q."""
        if not stack or not isinstance(stack[-1][1], tuple):
            return
        child, (joint, parent, origin), pose, weld = stack.pop()
        self.joints.append((joint, parent, origin))
        self.bodies.append(None)
        stack.append((child, len(self.joints) - 1, pose, weld))

    def _body(self, name, judge):
        """The link's own body; links that do not move are not judged (a fixed base's inertia is ignored)."""
        inertial = getattr(self.urdf_links[name], "inertial", None)
        if inertial is None or not judge:
            return Link(name, 0.0, np.zeros(3), np.zeros((3, 3)))
        i = inertial.inertia
        tensor = np.array([[i.ixx, i.ixy, i.ixz], [i.ixy, i.iyy, i.iyz], [i.ixz, i.iyz, i.izz]], float)
        body = Link(name, inertial.mass, np.zeros(3), tensor).moved(_pose(inertial.origin))
        moments = np.linalg.eigvalsh(tensor)
        if moments[2] > (moments[0] + moments[1]) * (1.0 + 1e-6):
            self.remarks.append(f"link '{name}': principal moments {', '.join(f'{m:g}' for m in moments)} kg m² break "
                                "the triangle rule, no body has them")
        return body

    def _judge_size(self, arm, link):
        """A body inside a sphere of radius r has a radius of gyration of at most r: compare with what is known."""
        if not link.mass:
            return
        i = arm.links.index(link)
        reach = [2.0 * np.linalg.norm(link.com)]
        reach += [np.linalg.norm(joint.origin.translation) for joint in arm.joints if joint.parent == i]
        reach += [np.linalg.norm(frame.pose.translation) for frame in arm.frames if frame.link == i]
        gyration = math.sqrt(np.linalg.eigvalsh(link.inertia)[-1] / link.mass)
        if gyration > 0.5 * max(reach) > 0.0:
            self.remarks.append(
                f"link '{link.name}': radius of gyration {gyration:.3g} m is implausible for a body about "
                f"{max(reach):.3g} m long (is the inertia about the joint instead of the centre of mass?)")

    def _coordinates(self):
        """Joints with their limits, friction and coordinate."""
        order = {}
        for joint, _, _ in self.joints:
            if joint.mimic is None:
                order[joint.name] = len(order)
        return tuple(self._joint(joint, parent, origin, order) for joint, parent, origin in self.joints)

    def _joint(self, joint, parent, origin, order):
        leader, multiplier, offset = self._leader(joint)
        follows = leader.name if leader is not joint else ""
        limit, dynamics = joint.limit, joint.dynamics
        lower, upper, effort, velocity = limit.lower, limit.upper, limit.effort, limit.velocity
        missing = [word for word, value in (("effort", effort), ("velocity", velocity)) if value == 0.0]
        for word, value in (("effort", effort), ("velocity", velocity)):
            if value < 0.0:
                raise UrdfError(f"joint '{joint.name}': {word} limit {value:g} is negative")
        if joint.type == CONTINUOUS:
            lower, upper = -math.inf, math.inf
        elif lower == upper == 0.0:
            lower, upper = -math.inf, math.inf
            missing.append("position")
        elif lower > upper:
            raise UrdfError(f"joint '{joint.name}': lower limit {lower:g} is above the upper one {upper:g}")
        elif joint.type == "revolute" and 4.0 * math.pi < max(abs(lower), abs(upper)) <= 720.0:
            self.remarks.append(f"joint '{joint.name}': limits {lower:g} to {upper:g} rad are more than two turns "
                                "(are they degrees?)")
        if missing and not follows:
            self.remarks.append(f"joint '{joint.name}': no {', '.join(missing)} limit (absent or 0), "
                                "treated as unlimited; parameters can set it")
        damping = (dynamics.damping or 0.0) if dynamics is not None else 0.0
        coulomb = (dynamics.friction or 0.0) if dynamics is not None else 0.0
        for word, value in (("damping", damping), ("friction", coulomb)):
            if value < 0.0:
                raise UrdfError(f"joint '{joint.name}': {word} {value:g} is negative, it would create energy")
        return Joint(joint.name, joint.type, parent, origin, np.array(joint.axis, float), lower, upper,
                     velocity or math.inf, effort or math.inf, damping, coulomb,
                     coordinate=order[leader.name], multiplier=multiplier, offset=offset, follows=follows)

