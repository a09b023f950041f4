"""The identified arm as a URDF: the user's own text with new inertias and friction, and comments that say what is
known."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np

from ..errors import InputError

KNOWN, SILENT = 0.9, 0.1  # shares of the data in what is known of a parameter


def identified_urdf(text, result):
    """URDF text with the links' inertials and the joints' <dynamics> replaced by those of an `Identification`.

    Links welded to a moving link lose their <inertial> (it is inside the moving link's now). Everything else, comments
    too, stays. Raises InputError where the text is not the URDF of the arm that was identified.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", errors="replace")
    text = re.sub(r"^[\s\ufeff]*(<\?xml.*?\?>)?", "", text, count=1, flags=re.DOTALL)
    prologue = re.match(r"(\s*<!--.*?-->)*\s*", text, flags=re.DOTALL).group(0).strip()
    parser = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
    robot = ElementTree.fromstring(text.encode("utf-8"), parser)
    links = {element.get("name"): element for element in robot if element.tag == "link"}
    joints = {element.get("name"): element for element in robot if element.tag == "joint"}
    moving = {link.name: i for i, link in enumerate(result.arm.links)}
    for name in [*moving, *result.arm.joint_names]:
        if name not in links and name not in joints:
            raise InputError(f"the URDF has no link or joint '{name}': it is not the one that was identified")
    for frame in result.cad.frames:
        if frame.link < 0 or frame.name not in links:
            continue
        element = links[frame.name]
        if frame.name in moving:
            _write_inertial(element, result, moving[frame.name])
        elif element.find("inertial") is not None:
            element.remove(element.find("inertial"))
            element.insert(0, ElementTree.Comment(f" inertial moved into '{result.arm.links[frame.link].name}' "))
    for j, name in enumerate(result.arm.joint_names):
        _write_dynamics(joints[name], result, j)
    robot.insert(0, ElementTree.Comment(_summary(result)))
    ElementTree.indent(robot)
    return (
        '<?xml version="1.0"?>\n'
        + (prologue + "\n" if prologue else "")
        + ElementTree.tostring(robot, encoding="unicode")
        + "\n"
    )


def _safe(text):
    """Text that may stand in an XML comment."""
    return re.sub(r"--+", "-", text).rstrip("-")


def _summary(result):
    lines = [
        "",
        f"Identified by twolink_dynamics from {', '.join(signals.name for signals in result.signals)}; "
        f"zero-phase filter {result.hz:g} Hz.",
        "Only these combinations are known from the data (value, one standard error, verdict):",
    ]
    lines += [
        f"  {row.name} = {row.physical:.6g} {row.unit} (least squares {row.value:.6g} +- {row.error:.2g}): "
        f"{row.verdict}"
        for row in result.rows
    ]
    lines += ["What they leave open was taken from the URDF given, as near as a physical body allows."]
    if result.model.rotor != "none":
        lines += [
            f"Rotor inertia of {name}: {value:.6g} kg m2 (motor side), gear ratio {gear:g}; a URDF cannot hold it."
            for name, value, gear in zip(result.arm.joint_names, result.arm.rotor_inertia, result.arm.gear_ratio)
        ]
    return _safe("\n    ".join(lines)) + "\n  "


def _write_inertial(element, result, i):
    link = result.arm.links[i]
    old = element.find("inertial")
    place = list(element).index(old) if old is not None else 0
    if old is not None:
        element.remove(old)
    inertial = ElementTree.Element("inertial")
    groups = {"identified": [], "partly": [], "kept from the URDF given": []}
    for k, share in enumerate(result.physical.share[10 * i : 10 * i + 10]):
        key = "identified" if share >= KNOWN else "partly" if share > SILENT else "kept from the URDF given"
        groups[key].append(result.model.names[10 * i + k])
    comment = "; ".join(f"{key}: {', '.join(names)}" for key, names in groups.items() if names)
    inertial.append(ElementTree.Comment(_safe(f" about the link frame: {comment} ")))
    ElementTree.SubElement(inertial, "origin", xyz=_numbers(link.com), rpy="0 0 0")
    ElementTree.SubElement(inertial, "mass", value=_numbers([link.mass]))
    names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    values = link.inertia[np.triu_indices(3)]
    ElementTree.SubElement(inertial, "inertia", {name: _numbers([value]) for name, value in zip(names, values)})
    element.insert(place, inertial)


def _write_dynamics(element, result, j):
    kinds = {"damping": ("viscous", result.arm.damping), "friction": ("coulomb", result.arm.coulomb)}
    fitted = [label for label, (kind, _) in kinds.items() if result.model.kinds(kind).any()]
    if not fitted:
        return
    dynamics = element.find("dynamics")
    if dynamics is None:
        dynamics = ElementTree.SubElement(element, "dynamics")
    for label in kinds:
        if label in fitted:
            dynamics.set(label, _numbers([kinds[label][1][j]]))
    element.insert(list(element).index(dynamics), ElementTree.Comment(f" identified: {', '.join(fitted)} "))


def _numbers(values):
    return " ".join(repr(float(value)) for value in values)
