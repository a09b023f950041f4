"""twolink simulate: an arm let go, driven by constant efforts, or driven by the efforts of a recording."""

from __future__ import annotations

import importlib.util
import sys
import warnings

import numpy as np

from ..errors import InputError, TwolinkWarning
from ..flexible import FlexibleJoints
from ..friction import Friction
from ..integrators import METHODS
from ..plant import Plant
from ..replay import replay
from ..simulation import Simulation
from ..trajectory import Trajectory
from ._model_options import add_model_arguments, arm_from

HELP = "simulate an arm without ROS: let go, under constant efforts, or replaying recorded ones (--effort log.csv)"


def add_arguments(parser):
    add_model_arguments(parser)
    parser.add_argument("--duration", type=float, default=5.0, metavar="S", help="simulated time [s] (default 5)")
    parser.add_argument(
        "--q0", nargs="+", type=float, metavar="Q", help="start positions, joint order [rad or m] (default 0)"
    )
    parser.add_argument("--qd0", nargs="+", type=float, metavar="V", help="start velocities [rad/s or m/s] (default 0)")
    parser.add_argument("--tau", nargs="+", type=float, metavar="T", help="constant efforts [N m or N] (default 0)")
    parser.add_argument("--dt", type=float, default=1e-3, metavar="S", help="step [s] (default 0.001)")
    parser.add_argument("--method", choices=tuple(METHODS), default="rk4", help="integration (default rk4)")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="keep every N-th state (default 1)")
    parser.add_argument(
        "--plot", metavar="FILE", help="write a picture of positions, velocities, efforts (needs matplotlib)"
    )
    parser.add_argument(
        "--csv", metavar="FILE", help="write time [s], positions, velocities [rad or m, per s], efforts [N m or N]"
    )
    log = parser.add_argument_group("replay of a recording")
    log.add_argument(
        "--effort",
        metavar="LOG",
        help="a CSV (columns by name: time, pos1 or pos_meas1, vel1, tau1 or tau_meas1 ...; "
        "s, rad, rad/s, N m on the joint side) or a rosbag2; its efforts drive the arm from its first state, "
        "and its states are compared with",
    )
    log.add_argument(
        "--effort-columns", choices=("measured", "commanded"), default="measured", help="which efforts of the log"
    )
    log.add_argument(
        "--restart", type=float, metavar="S", help="put the arm back on the recorded state every S seconds"
    )
    plant = parser.add_argument_group("plant (one value, or one per joint; default: what the URDF says)")
    for name, what in (
        ("coulomb", "Coulomb friction [N m or N]"),
        ("viscous", "viscous friction [N m s/rad or N s/m]"),
        ("static", "breakaway friction [N m or N]"),
        ("stribeck", "Stribeck velocity [rad/s or m/s]"),
        ("rotor-inertia", "rotor inertia [kg m²]"),
        ("gear-ratio", "gear ratio"),
        ("stiffness", "joint stiffness, makes the joints flexible [N m/rad or N/m]"),
        ("joint-damping", "damping of the flexible joints [N m s/rad or N s/m]"),
    ):
        plant.add_argument(f"--{name}", nargs="+", type=float, metavar="X", help=what)
    plant.add_argument("--no-stops", action="store_true", help="ignore the position limits")
    plant.add_argument("--no-effort-limits", action="store_true", help="do not clamp efforts")


def run(args):
    if args.every < 1:
        raise InputError(f"--every {args.every}: must be at least 1")
    if args.dt > 0.0 and args.duration < args.dt:
        raise InputError(f"--duration {args.duration:g}: must be at least one step, --dt {args.dt:g} s")
    if args.plot and importlib.util.find_spec("matplotlib") is None:  # before the work, not after it
        raise InputError("--plot needs matplotlib: pip install matplotlib")
    arm = arm_from(args)
    plant = plant_from(arm, args)
    if args.effort is not None:
        return _replay(plant, args)
    sim = Simulation(
        plant, args.dt, args.method, q=_per_joint(plant.arm, "q0", args.q0), qd=_per_joint(plant.arm, "qd0", args.qd0)
    )
    path, finished = _run(sim, args.duration, _per_joint(plant.arm, "tau", args.tau), args.every)
    names = plant.arm.joint_names
    print(
        f"{plant.arm.name}: {sim.t:g} s with {args.method}, dt = {args.dt:g} s"
        + (f" in {sim.substeps} sub-steps" if sim.substeps > 1 else "")
    )
    print(f"{'joint':>16} {'q0':>12} {'q':>12} {'qd':>12} {'largest |qd|':>12} {'effort':>12}")
    for k, name in enumerate(names):
        print(
            f"{name:>16} {path.q[0, k]:12.6f} {path.q[-1, k]:12.6f} {path.qd[-1, k]:12.6f} "
            f"{np.abs(path.qd[:, k]).max():12.6f} {sim.effort[k]:12.6f}"
        )
    print(_energies(sim.ledger))
    _write(args, path, names)
    return 0 if finished else 130


def plant_from(arm, args):
    """The Plant the arguments mean; raises TwolinkError."""
    rotor, gear = (
        _per_joint(arm, "rotor-inertia", args.rotor_inertia, None),
        _per_joint(arm, "gear-ratio", args.gear_ratio, None),
    )
    changes = {name: value for name, value in (("rotor_inertia", rotor), ("gear_ratio", gear)) if value is not None}
    if changes:
        arm = arm.with_joints(**changes)
    base = Friction.from_arm(arm)
    coulomb, viscous = (
        _per_joint(arm, "coulomb", args.coulomb, base.coulomb),
        _per_joint(arm, "viscous", args.viscous, base.viscous),
    )
    friction = Friction(
        coulomb, viscous, _per_joint(arm, "static", args.static, None), _per_joint(arm, "stribeck", args.stribeck, None)
    )
    stiffness = _per_joint(arm, "stiffness", args.stiffness, None)
    flexible = None
    if stiffness is not None:
        flexible = FlexibleJoints(stiffness, _per_joint(arm, "joint-damping", args.joint_damping))
    return Plant(
        arm, friction=friction, flexible=flexible, stops=not args.no_stops, effort_limits=not args.no_effort_limits
    )


def _per_joint(arm, name, values, default=0.0):
    """(n,) from no, one or n values; `default` as it is where none were given and it is None or an array."""
    if values is None:
        return default if default is None or np.ndim(default) else np.full(arm.n, default)
    if len(values) not in (1, arm.n):
        raise InputError(f"--{name}: {len(values)} values for the {arm.n} joints {', '.join(arm.joint_names)}")
    return np.array(np.broadcast_to(values, (arm.n,)))


def _run(sim, duration, tau, every):
    """(Trajectory, whether it came to its end): Ctrl-C keeps what there is."""
    total = round(duration / sim.dt)
    piece = every * max(1, total // (100 * every))
    parts, finished = [sim.run(0.0)], True
    try:
        while (left := total - round(sim.t / sim.dt)) > 0:
            parts.append(sim.run(min(piece, left) * sim.dt, tau, every=every))
            _progress(1.0 - max(0, left - piece) / total)
    except KeyboardInterrupt:
        finished = False
    _progress(None)
    joined = {
        name: np.concatenate([getattr(parts[0], name)] + [getattr(part, name)[1:] for part in parts[1:]])
        for name in ("t", "q", "qd", "tau")
    }
    joined["tau"][0] = parts[1].tau[0] if len(parts) > 1 else joined["tau"][0]
    return Trajectory(**joined), finished


def _progress(fraction):
    """A counter on a terminal's stderr; None clears it."""
    if sys.stderr.isatty():
        print(
            "\r" + (" " * 20 + "\r" if fraction is None else f"simulated {fraction:4.0%}"),
            end="",
            file=sys.stderr,
            flush=True,
        )


def _energies(ledger):
    return "energy [J]: " + ", ".join(
        f"{name} {value:.6g}" for name, value in ledger.items() if value != 0.0 or name == "balance"
    )


def _replay(plant, args):
    from ..identification import LogFormat, read_log

    arm = plant.arm
    log = read_log(args.effort, arm, LogFormat(effort=args.effort_columns), check=False)
    for remark in log.remarks:
        print(f"note: {remark}", file=sys.stderr)
    first, last = max(log.pieces(), key=lambda piece: piece[1] - piece[0])
    if last - first < len(log.t):
        warnings.warn(
            f"{log.name}: {len(log.pieces())} pieces; replaying the longest, samples {first} to {last}",
            TwolinkWarning,
            stacklevel=2,
        )
    t, q, tau = log.t[first:last], log.q[first:last], log.tau[first:last]
    qd = np.gradient(q, t, axis=0) if log.qd is None else log.qd[first:last]
    if log.qd is None:
        warnings.warn(f"{log.name}: no velocities recorded, differentiated the positions", TwolinkWarning, stacklevel=2)
    _warn_of_limits(plant, q, tau)
    result = replay(plant, Trajectory(t, q, qd, tau), args.dt, args.method, args.restart, _progress)
    _progress(None)
    print(
        f"{arm.name}: {result.simulated.duration:.3f} s of '{log.name}' ({len(t)} samples) replayed with "
        f"{args.method}, dt = {args.dt:g} s" + (f", restarted {result.restarts} times" if args.restart else "")
    )
    print("simulated - recorded, RMS [rad or m, and per second], and as a share of the recording's standard deviation")
    print(f"{'joint':>16} {'RMS q':>12} {'of spread':>10} {'RMS qd':>12} {'of spread':>10}")
    for k, name in enumerate(arm.joint_names):
        print(
            f"{name:>16} {result.rms_q[k]:12.6f} {_share(result.rms_q[k], result.spread_q[k]):>10} "
            f"{result.rms_qd[k]:12.6f} {_share(result.rms_qd[k], result.spread_qd[k]):>10}"
        )
    print(_energies(result.ledger))
    if args.restart is None and (result.rms_q > 0.5 * result.spread_q).any():
        print(
            "hint: the simulated arm left the recorded path. Small errors grow where an arm swings freely: "
            "--restart 0.1 judges each 0.1 s on its own"
        )
    _write(args, result.simulated, arm.joint_names, result.recorded)
    return 0


def _warn_of_limits(plant, q, tau):
    """What of the recording this plant cannot do: it would look like a bad model."""
    arm = plant.arm
    for k, name in enumerate(arm.joint_names):
        most, limit = np.abs(tau[:, k]).max(), arm.effort_limit[k]
        if plant.effort_limits and most > limit:
            warnings.warn(
                f"joint '{name}': recorded efforts reach {most:.3g}, above the arm's limit {limit:.3g}, and are "
                "clamped; --no-effort-limits takes them as they are",
                TwolinkWarning,
                stacklevel=3,
            )
        low, high = q[:, k].min(), q[:, k].max()
        if plant.stops and (low < arm.lower[k] or high > arm.upper[k]):
            warnings.warn(
                f"joint '{name}': recorded from {low:.3g} to {high:.3g}, beyond the arm's stops {arm.lower[k]:.3g} to "
                f"{arm.upper[k]:.3g}; --no-stops ignores them",
                TwolinkWarning,
                stacklevel=3,
            )


def _share(error, spread):
    return f"{error / spread:.1%}" if spread > 0.0 else "-"


def _write(args, path, names, recorded=None):
    try:
        if args.csv:
            path.to_csv(args.csv, names)
            print(f"wrote {args.csv}")
        if args.plot:
            plot(args.plot, path, names, recorded)
            print(f"wrote {args.plot}")
    except OSError as error:
        raise InputError(f"cannot write '{error.filename}': {error.strerror}") from None


def plot(file, path, names, recorded=None):
    """A picture of q, q̇ and τ over time; the recorded motion dashed. Raises InputError without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("--plot needs matplotlib: pip install matplotlib") from None
    figure = Figure(figsize=(9.0, 7.0), layout="constrained")
    for row, (field, label) in enumerate(
        (("q", "position [rad or m]"), ("qd", "velocity [1/s]"), ("tau", "effort [N m or N]")), 1
    ):
        axes = figure.add_subplot(3, 1, row)
        for k, name in enumerate(names):
            (line,) = axes.plot(
                path.t, getattr(path, field)[:, k], label=name, drawstyle="steps-post" if field == "tau" else "default"
            )
            if recorded is not None and field != "tau":
                axes.plot(
                    recorded.t,
                    getattr(recorded, field)[:, k],
                    "--",
                    color=line.get_color(),
                    alpha=0.6,
                    label=f"{name} recorded",
                )
        axes.set_ylabel(label)
        axes.grid(alpha=0.3)
        axes.legend(loc="upper right", fontsize="small")
    axes.set_xlabel("time [s]")
    try:
        figure.savefig(file)
    except ValueError as error:
        raise InputError(f"--plot: {error}") from None
