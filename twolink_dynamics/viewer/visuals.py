"""The shapes of a URDF's <visual> elements. Nothing is downloaded; a mesh that is not on this disk is left out."""
from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from ..arm import Pose, make_pose
from ..kinematics import rotation_about

GREY = (0.62, 0.65, 0.70, 1.0)
MESH_SUFFIXES = (".stl", ".obj", ".ply", ".dae", ".glb")
MAX_MESH_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True)
class Shape:
    """One visual.

    link     name of the URDF link it is drawn on
    kind     'box' (x, y, z), 'cylinder' (radius, length), 'sphere' (radius,), 'mesh' (scale x, y, z)
    size     the numbers named above [m], factors for a mesh
    pose     Pose of the shape in the link
    rgba     colour, each 0 … 1
    path     file of a mesh
    """

    link: str
    kind: str
    size: tuple
    pose: Pose
    rgba: tuple = GREY
    path: Path | None = None


def rotation_of_rpy(rpy):
    """R = Rz(yaw) Ry(pitch) Rx(roll) (3, 3), URDF's fixed-axis angles [rad]."""
    roll, pitch, yaw = rpy
    return (rotation_about((0, 0, 1), yaw) @ rotation_about((0, 1, 0), pitch) @ rotation_about((1, 0, 0), roll))


def parse_visuals(text_or_path):
    """All drawable shapes of a URDF, a tuple of Shape. Visuals that cannot be drawn (odd numbers, unknown geometry,
    missing meshes) are left out, a text that load_urdf would refuse gives none: pictures never stop a simulation."""
    robot = _root(text_or_path)
    colours = {}
    for element in robot.iter() if len(robot) else ():
        if _local(element.tag) == "material" and element.get("name"):
            rgba = _colour(element)
            if rgba is not None:
                colours[element.get("name")] = rgba
    shapes = []
    for link in robot:
        if _local(link.tag) != "link":
            continue
        for visual in link:
            if _local(visual.tag) == "visual":
                shape = _shape(link.get("name"), visual, colours)
                if shape is not None:
                    shapes.append(shape)
    return tuple(shapes)


def _root(source):
    if not (isinstance(source, str) and "<" in source):
        source = Path(source).read_bytes().decode("utf-8", errors="replace")
    text = re.sub(r"^[\s\ufeff]*(<\?xml.*?\?>)?", "", source, count=1, flags=re.DOTALL)
    if "<!DOCTYPE" in text.upper() or "<!ENTITY" in text.upper():
        return ()
    try:
        return ElementTree.fromstring(text)
    except ElementTree.ParseError:
        return ()


def _local(tag):
    return tag.rsplit("}", 1)[-1] if isinstance(tag, str) else ""


def _child(element, tag):
    if element is not None:
        for child in element:
            if _local(child.tag) == tag:
                return child
    return None


def _numbers(element, attribute, count, default=None):
    text = element.get(attribute) if element is not None else None
    if text is None:
        return default
    try:
        values = tuple(float(word) for word in text.split())
    except ValueError:
        return None
    return values if len(values) == count and np.isfinite(values).all() else None


def _colour(material):
    rgba = _numbers(_child(material, "color"), "rgba", 4)
    return None if rgba is None else tuple(np.clip(rgba, 0.0, 1.0))


def _shape(link, visual, colours):
    origin = _child(visual, "origin")
    xyz, rpy = _numbers(origin, "xyz", 3, (0.0,) * 3), _numbers(origin, "rpy", 3, (0.0,) * 3)
    geometry, material = _child(visual, "geometry"), _child(visual, "material")
    if geometry is None or xyz is None or rpy is None:
        return None
    rgba = GREY
    if material is not None:
        rgba = _colour(material) or colours.get(material.get("name"), GREY)
    pose = make_pose(rotation_of_rpy(rpy), xyz)
    for form in geometry:
        kind = _local(form.tag)
        if kind == "box":
            size = _numbers(form, "size", 3)
        elif kind == "cylinder":
            size = (_numbers(form, "radius", 1) or ()) + (_numbers(form, "length", 1) or ())
            size = size if len(size) == 2 else None
        elif kind == "sphere":
            size = _numbers(form, "radius", 1)
        elif kind == "mesh":
            size, path = _numbers(form, "scale", 3, (1.0,) * 3), find_mesh(form.get("filename") or "")
            return Shape(link, kind, size, pose, rgba, path) if size and path else None
        else:
            continue
        return Shape(link, kind, size, pose, rgba) if size and min(size) > 0.0 else None
    return None


def find_mesh(reference):
    """The file a mesh reference means (``package://``, ``file://`` or an absolute path), or None. Packages are looked
    up in the ament index and in this package; a path may not climb out of its package."""
    kind, _, rest = reference.rpartition("://")
    if kind == "package":
        package, _, inside = rest.partition("/")
        folders = list(_package_folders(package))
    elif kind in ("", "file"):
        folders, inside = [Path("/")] if rest.startswith("/") else [], rest.lstrip("/")
    else:
        return None  # http and the like: never fetched
    for folder in folders:
        try:
            path = folder.joinpath(inside).resolve()
            if path.suffix.lower() in MESH_SUFFIXES and path.is_relative_to(folder.resolve()) and path.is_file() \
                    and path.stat().st_size <= MAX_MESH_BYTES:
                return path
        except (OSError, ValueError, RuntimeError):
            pass
    return None


def _package_folders(package):
    from .. import resources
    if package == resources.PACKAGE:
        yield from resources.share_directories()
        return
    try:
        from ament_index_python.packages import get_package_share_directory
        yield Path(get_package_share_directory(package))
    except (ImportError, LookupError, ValueError, OSError):  # no index, no such package
        return


def mesh_arrays(shape):
    """(vertices (V, 3) [m], faces (F, 3)) of a mesh shape, or None where the file cannot be read."""
    import trimesh
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mesh = trimesh.load(str(shape.path), force="mesh")
        vertices, faces = np.asarray(mesh.vertices, float), np.asarray(mesh.faces)
    except Exception:  # whatever a damaged file or a missing reader brings: it is only a picture
        return None
    if vertices.ndim != 2 or vertices.shape[-1] != 3 or not len(faces):
        return None
    return vertices * np.array(shape.size), faces
