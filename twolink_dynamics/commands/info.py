"""twolink info: what a URDF was read as; without one, what this installation has."""
from __future__ import annotations

import argparse
import math
import platform
import sys
import warnings
from importlib import metadata

import numpy as np

from .. import __version__
from ..arm import ROOT
from ..dynamics import Dynamics
from ..errors import TwolinkError, TwolinkWarning, choices
from ..resources import find_urdf, resource
from ..urdf import load_urdf
from ._model_options import add_model_arguments, arm_from

HELP = ("show how a URDF is read: joints, limits, masses, base parameters, what was lumped; without one, the versions "
        "in use")
OPTIONAL = (("llvmlite", "machine-code kernels"), ("rclpy", "the ROS 2 nodes"), ("viser", "the web viewer"),
            ("matplotlib", "plots"), ("urdfdom-py", "reading URDFs"))


def add_arguments(parser):
    add_model_arguments(parser, optional=True)
    parser.add_argument("--base-parameters", action=argparse.BooleanOptionalAction, default=None,
                        help="the identifiable combinations of parameters (default: for arms of up to 7 joints)")


def run(args):
    if args.urdf is None:
        print(_versions())
        return 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TwolinkWarning)  # they are in the answer
        arm = arm_from(args)
    print(describe(arm, args.base_parameters))
    return 0


def describe(arm, base=None):
    """Everything `twolink info URDF` says, as text."""
    base = arm.n <= 7 if base is None else base
    parts = [_head(arm), _joints(arm), _links(arm)]
    parts += [_list("welded together", arm.lumped), _list("warnings", arm.warnings)]
    if base:
        parts.append(_base_parameters(arm))
    return "\n\n".join(part for part in parts if part)


def _head(arm):
    followers = [f"{joint.name} follows {joint.follows}" for joint in arm.joints if joint.follows]
    tip = arm.tip or f"not chosen (--tip: {choices(arm.tips)})"
    lines = [f"{arm.name}: {arm.n} joints, root link {arm.root}, tip {tip}",
             f"gravity ({', '.join(f'{x:g}' for x in arm.gravity)}) m/s² in the root frame, moving mass "
             f"{sum(link.mass for link in arm.links):.6g} kg",
             f"engine {getattr(Dynamics(arm), 'engine', 'newton_euler')}"]
    try:
        from ..planar import TwoLinkParameters, beta, gravity_coefficients
        p = TwoLinkParameters.from_arm(arm)
        first, second = gravity_coefficients(p)
        off = "" if p.d1 == p.d2 == 0.0 else ", centres of mass off the link line"
        lines.append(f"planar two-link arm: L1 = {p.L1:.6g} m, β = {beta(p):.6g} kg m², gravity coefficients "
                     f"{first:.6g} and {second:.6g} N m{off}")
    except TwolinkError:
        pass
    return "\n".join(lines + followers)


def _joints(arm):
    rows = [("joint", "kind", "carried by", "lower", "upper", "velocity", "effort", "damping", "friction", "unit")]
    for k, i in enumerate(arm.owners):
        joint = arm.joints[i]
        unit = "m, N" if arm.prismatic[k] else "rad, N m"
        parent = arm.root if joint.parent == ROOT else arm.links[joint.parent].name
        limits = (joint.lower, joint.upper, joint.velocity_limit, joint.effort_limit)
        rows.append((joint.name, joint.kind, parent, *map(_limit, limits),
                     f"{arm.damping[k]:g}", f"{arm.coulomb[k]:g}", unit))
    return _table(rows)


def _links(arm):
    rows = [("link (with all welded to it)", "mass kg", "centre of mass m", "principal moments kg m²")]
    for link in arm.links:
        moments = np.linalg.eigvalsh(link.inertia)
        rows.append((link.name, f"{link.mass:g}", " ".join(f"{x:.5g}" for x in link.com),
                     " ".join(f"{max(x, 0.0) if abs(x) < 1e-12 else x:.4g}" for x in moments)))
    return _table(rows)


def _base_parameters(arm):
    from ..identification.base_parameters import base_parameters
    if arm.n > 3:
        print("finding the identifiable combinations ...", file=sys.stderr)
    base = base_parameters(arm)
    values = base.K @ np.concatenate([link.parameters for link in arm.links])
    rows = [(f"  {name}", f"= {value:.6g} {unit}") for name, value, unit in zip(base.names, values, base.units)]
    symbols = ", ".join(f"{name} = {value:.6g} m" for name, value in base.symbols.items()
                        if any(name in x for x in base.names))
    lines = [f"base parameters (all that motion and torque can tell, {len(rows)} of {10 * len(arm.links)}"
             + (f"; {symbols}" if symbols else "") + "):", _table(rows)]
    return "\n".join(lines)


def _limit(value):
    return "none" if math.isinf(value) else f"{value:.5g}"


def _list(title, lines, limit=20):
    if not lines:
        return ""
    shown = [f"  {line}" for line in lines[:limit]]
    return "\n".join([f"{title}:", *shown, *([f"  ... and {len(lines) - limit} more"] if len(lines) > limit else [])])


def _table(rows):
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def _versions():
    lines = [f"twolink_dynamics {__version__}", f"Python {platform.python_version()} on {platform.system()} "
             f"{platform.machine()}", f"NumPy {np.__version__}, SciPy {_version('scipy')}, SymPy {_version('sympy')}"]
    for name, use in OPTIONAL:
        lines.append(f"{name} {_version(name) or 'not found'} ({use})")
    lines.append(f"engine {getattr(Dynamics(load_urdf(find_urdf('twolink'))), 'engine', 'newton_euler')}")
    lines.append(f"shipped arms: {choices(sorted(path.stem for path in resource('urdf').glob('*.urdf')))}")
    return "\n".join(lines)


def _version(name):
    for candidate in (name, f"ros-{name}", name.replace("-", "_")):
        try:
            return metadata.version(candidate)
        except metadata.PackageNotFoundError:
            pass
    try:  # inside a ROS installation packages have no distribution metadata
        module = __import__({"urdfdom-py": "urdf_parser_py"}.get(name, name.replace("-", "_")))
    except ImportError:
        return None
    return getattr(module, "__version__", "found")
