"""Recordings in CSV: columns found by name, bad cells named by column and row."""

from __future__ import annotations

import csv
import re

import numpy as np

from ..errors import InputError, choices
from .logs import make_log

TIME_NAMES = ("time", "t", "timestamp", "stamp", "__time", "sec")
# Stems of column names, best first: what was measured, what a filter made of it, what has no qualifier at all.
STEMS = {
    "position": ("pos_meas", "position_meas", "q_meas", "pos", "position", "q", "theta", "pos_filt"),
    "velocity": ("vel_meas", "velocity_meas", "qd_meas", "dq_meas", "vel", "velocity", "qd", "dq", "qdot", "vel_filt"),
    "effort": ("tau_meas", "torque_meas", "effort_meas", "tau", "torque", "effort"),
}
COMMANDED = ("tau_con", "tau_cmd", "tau_des", "effort_command", "command", "tau_command", "tau_con_")
UNIT = re.compile(r"\s*[\[(]\s*([^\])]*?)\s*[\])]\s*$")


def read_csv(path, arm, fmt):
    """The Log in a CSV file: one header line (``#`` lines before it are skipped), comma, semicolon or tab."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            skipped, header = _header(file)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read log '{path}': {getattr(error, 'strerror', None) or error}") from None
    delimiter = max(",;\t", key=header.count)
    labels = [cell.strip().strip('"') for cell in header.split(delimiter)]
    names = [UNIT.sub("", label) for label in labels]
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{path.name}: two columns are named '{twice}'")
    if all(_is_number(name) for name in names):
        raise InputError(f"{path.name}: the first line holds numbers, a header line with the columns' names is needed")
    chosen = _columns(path.name, names, arm, fmt)
    _stated_units(path.name, labels, chosen, fmt)
    used = sorted({index for indices in chosen.values() for index in indices})
    table = _numbers(path, skipped + 1, delimiter, used, names)
    place = {index: k for k, index in enumerate(used)}
    pick = {quantity: table[:, [place[i] for i in indices]] for quantity, indices in chosen.items()}
    sources = {quantity: tuple(names[i] for i in indices) for quantity, indices in chosen.items()}
    return make_log(
        path.name, arm, fmt, pick["time"][:, 0], pick["position"], pick.get("velocity"), pick["effort"], sources
    )


def _header(file):
    for count, line in enumerate(file):
        if line.strip() and not line.lstrip().startswith("#"):
            return count, line.rstrip("\r\n")
    raise InputError(f"{file.name}: no header line, the file is empty")


def _is_number(text):
    try:
        float(text)
        return True
    except ValueError:
        return False


def _columns(name, names, arm, fmt):
    """{quantity: column indices in the arm's joint order}."""
    lower = {column.lower(): i for i, column in enumerate(names)}

    def index(column):
        if column not in names:
            raise InputError(f"{name}: no column '{column}'; there are {choices(names)}")
        return names.index(column)

    stated = {
        quantity: (columns,) if isinstance(columns, str) else tuple(columns)
        for quantity, columns in fmt.columns.items()
    }
    for quantity, columns in stated.items():
        count = 1 if quantity == "time" else arm.n
        if quantity not in ("time", *STEMS) or len(columns) != count:
            raise InputError(
                f"columns: '{quantity}' with {len(columns)} name(s); time takes 1, position, velocity and effort "
                f"{arm.n} each, in the order {', '.join(arm.joint_names)}"
            )
    chosen = {quantity: [index(column) for column in columns] for quantity, columns in stated.items()}
    if "time" not in chosen:
        found = [lower[label] for label in TIME_NAMES if label in lower]
        if not found:
            raise InputError(f"{name}: no time column; looked for {choices(TIME_NAMES)} among {choices(names)}")
        chosen["time"] = found[:1]
    order = tuple(fmt.joints) or arm.joint_names
    if sorted(order) != sorted(arm.joint_names):
        raise InputError(f"joints: {choices(order)} is not an order of {choices(arm.joint_names)}")
    numbers = {joint: k + 1 for k, joint in enumerate(order)}
    for quantity, stems in STEMS.items():
        if quantity in chosen:
            continue
        stems = COMMANDED if quantity == "effort" and fmt.effort == "commanded" else stems
        found = next((columns for stem in stems if (columns := _by_stem(lower, stem, arm, numbers))), None)
        if found is None and quantity != "velocity":
            wanted = [f"{stem}1" for stem in stems] + [f"{arm.joint_names[0]}/{quantity}"]
            raise InputError(
                f"{name}: no {quantity} columns for {arm.n} joints; looked for {choices(wanted)} … among "
                f"{choices(names)}"
            )
        if found is not None:
            chosen[quantity] = found
    return chosen


def _by_stem(lower, stem, arm, numbers):
    """Columns ``stem1 … stemN``, ``stem_1``, ``stem_JOINT``, ``JOINT/stem`` …, or None."""
    found = []
    for joint in arm.joint_names:
        k, j = numbers[joint], joint.lower()
        forms = (
            f"{stem}{k}",
            f"{stem}_{k}",
            f"{stem}[{k - 1}]",
            f"{stem}_{j}",
            f"{stem}.{j}",
            f"{stem}/{j}",
            f"{j}_{stem}",
            f"{j}.{stem}",
            f"{j}/{stem}",
            f"/joint_states/{j}/{stem}",
            f"joint_states/{j}/{stem}",
        )
        match = next((lower[form] for form in forms if form in lower), None)
        if match is None:
            return None
        found.append(match)
    return found


def _stated_units(name, labels, chosen, fmt):
    """A unit in brackets behind a column's name must be the one the format states."""
    default = {"time": "s", "position": "rad", "velocity": "rad/s", "effort": "Nm"}
    alias = {"n m": "nm", "n·m": "nm", "n*m": "nm", "°": "deg", "°/s": "deg/s", "1/s": "rad/s", "newton metre": "nm"}
    for quantity, indices in chosen.items():
        expected = fmt.units.get(quantity, default[quantity])
        for i in indices:
            found = UNIT.search(labels[i])
            written = found.group(1).lower() if found else ""
            written = alias.get(written, written)
            if (
                written
                and written != expected.lower()
                and not (written in ("m", "m/s", "n") and quantity not in fmt.units)
            ):
                raise InputError(
                    f"{name}: column '{labels[i]}' says {found.group(1)}, but {quantity} is read as {expected}; "
                    f"state units {quantity}={found.group(1)} if that is right"
                )


def _numbers(path, skip, delimiter, used, names):
    """(N, len(used)) numbers; a bad cell is named."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            return np.loadtxt(file, delimiter=delimiter, skiprows=skip, usecols=used, ndmin=2, comments="#")
    except ValueError:
        pass
    with open(path, encoding="utf-8-sig", newline="") as file:
        for _ in range(skip):
            next(file)
        row = 0
        for cells in csv.reader(file, delimiter=delimiter):
            if not cells or cells[0].lstrip().startswith("#"):
                continue
            row += 1
            for i in used:
                if i >= len(cells):
                    raise InputError(
                        f"{path.name}: column '{names[i]}', row {row}: missing, the row has {len(cells)} of "
                        f"{len(names)} cells"
                    )
                if not _is_number(cells[i]):
                    hint = " (a decimal comma?)" if re.fullmatch(r"\s*-?\d+,\d+\s*", cells[i]) else ""
                    raise InputError(
                        f"{path.name}: column '{names[i]}', row {row}: '{cells[i].strip()}' is not a number{hint}"
                    )
    raise InputError(f"{path.name}: the numbers cannot be read")
