"""The mini corpus: one quirk per tiny URDF, and the shipped arms."""
import warnings
from pathlib import Path

from twolink_dynamics import load_urdf

MINI = Path(__file__).parent / "urdf"
SHIPPED = Path(__file__).parent.parent / "urdf"

# refused, with words of which one must stand in the one line that says so
REFUSED = {
    "axis_zero": ("axis",), "floating_base": ("floating",), "joint_loop": ("loop", "two parents"),
    "link2_mass_zero": ("singular",), "link2_without_inertial": ("singular",), "negative_iyy": ("definite",),
    "negative_mass": ("mass",), "point_mass_on_elbow_axis": ("singular",), "two_roots": ("root",),
    "xacro_not_expanded": ("xacro",),
}
GOOD = sorted(path.stem for path in MINI.glob("*.urdf") if path.stem not in REFUSED)
SHIPPED_NAMES = sorted(path.stem for path in SHIPPED.glob("*.urdf"))


def load(path, **options):
    """An arm without its warnings on the screen; those are tested elsewhere. Branched arms get their last tip."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arm = load_urdf(path, **options)
    return arm if arm.tip is not None else arm.with_tip(arm.tips[-1])


def mini(name, **options):
    """A URDF of the mini corpus."""
    return load(MINI / f"{name}.urdf", **options)


def shipped(name, **options):
    """An arm of the package."""
    return load(SHIPPED / f"{name}.urdf", **options)
