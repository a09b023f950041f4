"""Random valid arms for the tests: `random_arm(seed, ...)` for loops, `arms(...)` as a hypothesis strategy.

Hypothesis draws the structure (number, kinds, tree, mimics, rotors), which is what it can shrink; the numbers come from
a seeded generator. Quarter turns, axes along the coordinate axes, zeros and point masses are frequent on purpose:
they are what engines fold away.
"""
import numpy as np
from hypothesis import strategies as st

from twolink_dynamics.arm import (
    CONTINUOUS,
    KINDS,
    PRISMATIC,
    REVOLUTE,
    ROOT,
    Arm,
    Frame,
    Joint,
    Link,
    make_pose,
    symmetric,
)
from twolink_dynamics.kinematics import rotation_about, weightless_coordinate

GRAVITY = (0.0, 0.0, -9.81)


def random_rotation(rng):
    """A general rotation, or (every other time) a product of quarter turns."""
    turns = np.pi / 2 * rng.integers(0, 4, 3) if rng.random() < 0.5 else rng.uniform(-np.pi, np.pi, 3)
    R = np.eye(3)
    for axis, angle in zip(np.eye(3), turns):
        R = rotation_about(axis, angle) @ R
    return R


def random_axis(rng):
    """A coordinate axis of either sign, or a general unit vector."""
    if rng.random() < 0.6:
        return np.eye(3)[rng.integers(3)] * rng.choice((-1.0, 1.0))
    vector = rng.normal(size=3)
    return vector / np.linalg.norm(vector)


def random_vector(rng, size):
    """Three entries up to `size`, each zero one time in three."""
    return np.where(rng.random(3) < 1 / 3, 0.0, rng.uniform(-size, size, 3))


def random_link(rng, name, points=True):
    """A body that mass can fill (triangle rule holds); one time in six a point mass."""
    mass = float(10.0 ** rng.uniform(-1.0, 1.0))
    if points and rng.random() < 1 / 6:
        return Link(name, mass, rng.uniform(0.05, 0.4, 3), np.zeros((3, 3)))
    a, b, c = rng.uniform(0.01, 0.2, 3) ** 2  # variances of the mass along its principal axes [m²]
    R = random_rotation(rng)
    return Link(name, mass, random_vector(rng, 0.4), symmetric(R @ np.diag([b + c, a + c, a + b]) @ R.T * mass))


def build_arm(seed, kinds, parents, followers=(), rotors=False, rotor_coupling=False, gravity=GRAVITY, friction=False):
    """The arm with joints of `kinds`, each on the link with index `parents[i]` (−1: the root); `followers` are indices
    of joints that mimic an earlier independent one. All numbers come from `seed`."""
    rng = np.random.default_rng(seed)
    joints, links, owners = [], [], []
    for i, (kind, parent) in enumerate(zip(kinds, parents)):
        leader = owners[rng.integers(len(owners))] if i in followers and owners else None
        common = {
            "origin": make_pose(random_rotation(rng), random_vector(rng, 0.5)), "axis": random_axis(rng),
            "rotor_inertia": float(10.0 ** rng.uniform(-5, -3)) if rotors else 0.0,
            "gear_ratio": float(rng.choice((-1.0, 1.0)) * rng.uniform(1.0, 100.0)) if rotors else 1.0,
            "damping": float(rng.uniform(0.0, 0.5)) if friction else 0.0,
            "coulomb": float(rng.uniform(0.0, 0.5)) if friction else 0.0,
        }
        if leader is None:
            joints.append(Joint(f"joint{i + 1}", kind, parent, coordinate=len(owners), **common))
            owners.append(i)
        else:
            joints.append(Joint(f"joint{i + 1}", kind, parent, coordinate=joints[leader].coordinate,
                                multiplier=float(rng.uniform(0.3, 2.0) * rng.choice((-1.0, 1.0))),
                                offset=float(rng.uniform(-1.0, 1.0)), follows=joints[leader].name, **common))
        links.append(random_link(rng, f"link{i + 1}"))
    leaves = [i for i in range(len(links)) if i not in parents]
    frames = [Frame("base", ROOT, make_pose())] + [Frame(link.name, i, make_pose()) for i, link in enumerate(links)]
    frames += [Frame(f"tool{i + 1}", i, make_pose(random_rotation(rng), rng.uniform(-0.3, 0.3, 3))) for i in leaves]
    tips = tuple(f"tool{i + 1}" for i in leaves)
    return Arm(f"random{seed}", tuple(joints), tuple(links), tuple(frames), tips, tips[-1], gravity, "base",
               rotor_coupling=rotor_coupling)


def regular(arm):
    """False for the rare arm with a joint that moves no mass (a point mass on an axis), which a URDF reader refuses."""
    return weightless_coordinate(arm) is None


def random_arm(seed, n=None, kinds=KINDS, tree=True, mimic=True, rotors=True):
    """A regular random arm; equal arguments give equal arms. n counts the joints, with followers among them."""
    rng = np.random.default_rng([seed, 77])
    for attempt in range(100):
        count = int(n if n is not None else rng.integers(1, 7))
        chosen = [str(rng.choice(kinds)) for _ in range(count)]
        parents = [i - 1 if not tree or rng.random() < 0.7 else int(rng.integers(-1, i)) for i in range(count)]
        followers = {i for i in range(1, count) if mimic and rng.random() < 0.15}
        with_rotors = rotors and rng.random() < 0.5
        arm = build_arm(1000 * seed + attempt, chosen, parents, followers, with_rotors,
                        bool(with_rotors and rng.random() < 0.5))
        if regular(arm):
            return arm
    raise AssertionError("no regular arm in a hundred attempts")


@st.composite
def arms(draw, min_joints=1, max_joints=5, kinds=KINDS, tree=True, mimic=True, rotors=True, gravity=GRAVITY):
    """Strategy: regular arms with min_joints … max_joints joints (followers among them)."""
    count = draw(st.integers(min_joints, max_joints))
    chosen = draw(st.lists(st.sampled_from(kinds), min_size=count, max_size=count))
    parents = [draw(st.integers(-1, i - 1)) if tree else i - 1 for i in range(count)]
    followers = draw(st.sets(st.integers(1, count - 1), max_size=count - 1)) if mimic and count > 1 else set()
    with_rotors = draw(st.booleans()) if rotors else False
    coupling = draw(st.booleans()) if with_rotors else False
    seed = draw(st.integers(0, 10_000))
    return next(arm for arm in (build_arm(seed + 20_000 * k, chosen, parents, followers, with_rotors, coupling, gravity)
                                for k in range(100)) if regular(arm))


def random_state(arm, seed=0, batch=()):
    """q, q̇, q̈ (…, n) of a seeded generator: angles over the whole circle, rates to 3, accelerations to 5."""
    rng = np.random.default_rng([seed, arm.n])
    shape = (*batch, arm.n)
    return rng.uniform(-np.pi, np.pi, shape), rng.uniform(-3.0, 3.0, shape), rng.uniform(-5.0, 5.0, shape)


__all__ = ["CONTINUOUS", "GRAVITY", "KINDS", "PRISMATIC", "REVOLUTE", "arms", "build_arm", "random_arm", "random_link",
           "random_state", "regular"]
