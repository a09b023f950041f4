"""Finds the package's data files (urdf/, config/, rviz/, launch/), alike in a source tree, pip or colcon install."""
from __future__ import annotations

import sysconfig
from pathlib import Path

from .errors import InputError, choices

PACKAGE = "twolink_dynamics"


def share_directories():
    """Where the data may be, best first: the source tree, the ament index, this distribution's record, the prefix."""
    source = Path(__file__).resolve().parent.parent
    if (source / "package.xml").is_file():
        yield source
    try:
        from ament_index_python.packages import get_package_share_directory
        yield Path(get_package_share_directory(PACKAGE))
    except (ImportError, LookupError, OSError):  # no ament, package not in its index, no AMENT_PREFIX_PATH
        pass
    from importlib import metadata  # slow to import, and seldom needed
    try:
        for file in metadata.files(PACKAGE) or ():
            if file.name == "package.xml" and file.parent.name == PACKAGE:
                yield Path(file.locate()).resolve().parent
    except metadata.PackageNotFoundError:
        pass
    yield Path(sysconfig.get_path("data")) / "share" / PACKAGE


def resource(*parts):
    """The path of a data file, e.g. ``resource("urdf", "twolink.urdf")``; raises InputError naming what there is."""
    for directory in share_directories():
        path = directory.joinpath(*parts)
        if path.exists():
            return path
    folder = next((d.joinpath(*parts[:-1]) for d in share_directories() if d.joinpath(*parts[:-1]).is_dir()), None)
    there = sorted(p.name for p in folder.iterdir()) if folder else ()
    raise InputError(f"no file '{'/'.join(parts)}' in this package; there are {choices(there)}")


def find_urdf(name):
    """A URDF by path, or by the name of a shipped one (``twolink`` or ``twolink.urdf``)."""
    path = Path(name)
    if path.is_file():
        return path
    if path.name == str(name):
        try:
            return resource("urdf", path.name if path.suffix else f"{path.name}.urdf")
        except InputError:
            pass
    shipped = sorted(p.stem for p in resource("urdf").glob("*.urdf"))
    raise InputError(f"no URDF file '{name}'; give a path, or a shipped one: {choices(shipped)}")
