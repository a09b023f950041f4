"""Untrusted URDF text: whatever comes, one line that names the offender, in bounded time; nothing else is opened."""
import random
import re
import warnings

import numpy as np
import pytest
from corpus import GOOD, MINI, SHIPPED, mini

from twolink_dynamics import Dynamics, ModelError, TwolinkError, UrdfError, load_urdf

PLAIN = (MINI / "plain.urdf").read_text()
DECLARED = '<?xml version="1.0"?>'


def refusal(source, **options):
    with pytest.raises(TwolinkError) as caught, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        load_urdf(source, **options)
    message = str(caught.value)
    assert message and len(message) < 4000 and len(message.splitlines()) == 1
    return message


def changed(old, new, count=1):
    assert old in PLAIN
    return PLAIN.replace(old, new, count)


@pytest.mark.parametrize("source", [
    '<!DOCTYPE r [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]><robot name="x">&b;</robot>',
    '<!DOCTYPE r [<!ENTITY a SYSTEM "file:///etc/passwd">]><robot name="&a;"/>',
    '<?note <!-- ?><!DOCTYPE r [<!ENTITY a "b">]><!-- --><robot name="&a;"><link name="a"/></robot>',
    '<!doctype robot><robot name="x"/>',
])
def test_no_doctype_however_hidden(source):
    assert "DOCTYPE" in refusal(source)


@pytest.mark.parametrize("source, word", [
    ("", "empty"), (b"  \n", "empty"), ("no such file", "cannot read"), ("a\0b", "cannot read"), (None, "NoneType"),
    (17, "int"), ("/dev/zero", "longer"), ("/", "cannot read"), (b"plain words", "no XML tag"),
    ("<robot", "well-formed"),
    ("<sdf><model/></sdf>", "<sdf>"), ("<robot name='r'/>", "no <link>"),
    ("<robot name='r'><link/></robot>", "no name"),
    ("<!--" * 500_000, "well-formed"), ("<robot>" + "<a>" * 500_000, "deep"), (PLAIN + " " * 5_000_000, "longer"),
    (PLAIN.replace(DECLARED, '<?xml version="1.0" encoding="klingon"?>').encode(), "klingon"),
    (PLAIN.replace(DECLARED, '<?xml version="1.0" encoding="idna"?>').encode(), "idna"),
    (PLAIN.replace(DECLARED, '<?xml version="1.0" encoding="utf-16"?>').encode(), "utf-16"),
    ("<robot name='r'><link name='b'/>" + "".join(f"<link name='l{i}'/>" for i in range(3000)) + "</robot>",
     "2000 links"),
], ids=lambda value: str(value)[:24])
def test_text_that_is_no_urdf(source, word):
    assert word in refusal(source)


@pytest.mark.parametrize("source, words", [
    (changed('value="1.2"', 'value="1,2"'), ("l1", "1,2", "comma")),
    (changed('value="1.2"', 'value="nan"'), ("l1", "nan", "finite")),
    (changed('value="1.2"', 'value="-inf"'), ("l1", "finite")),
    (changed('value="1.2"', 'value="1e999"'), ("l1", "finite")),
    (changed('value="1.2"', 'value="1e300"'), ("l1", "beyond")),
    (changed('value="1.2"', 'value="1_2"'), ("l1", "not a number")),
    (changed('value="1.2"', 'value="１"'), ("l1", "not a number")),
    (changed('value="1.2"', 'value=""'), ("l1", "not a number")),
    (changed('<mass value="1.2"/>', "<mass>1.2</mass>"), ("l1", "value")),
    (changed('<mass value="1.2"/>', ""), ("l1", "<mass>")),
    (changed('<mass value="1.2"/>', '<mass value="0"/>'), ("l1", "mass 0")),
    (changed('ixx="0.02" ', ""), ("l1", "ixx")),
    (changed("</inertial>", "</inertial><inertial/>"), ("l1", "2 <inertial>")),
    (changed('xyz="0 0 -0.5"', 'xyz="0 0"'), ("j2", "3 numbers")),
    (changed('<axis xyz="0 1 0"/>', '<axis xyz="0 1e-320 0"/>'), ("j1", "axis")),
    (changed('lower="-3" upper="3"', 'lower="3" upper="-3"'), ("j1", "above")),
    (changed('effort="20"', 'effort="-1"'), ("j1", "effort", "negative")),
    (changed('velocity="10"', 'velocity="-1"'), ("j1", "velocity", "negative")),
    (changed("</joint>", '<dynamics damping="-0.1"/></joint>'), ("j1", "damping", "energy")),
    (changed('type="revolute"', 'type="ball"'), ("j1", "ball", "revolute")),
    (changed('<parent link="base"/>', ""), ("j1", "parent")),
    (changed('<parent link="base"/>', '<parent link="bsae"/>'), ("j1", "bsae", "base")),
    (changed('name="j2"', 'name="j1"'), ("two joints", "j1")),
    (changed('name="l2"', 'name="l1"'), ("two links", "l1")),
    (changed('name="j1"', 'name="j&#10;1"'), ("joint", "name")),
    (changed('name="j1"', f'name="{"x" * 100_000}"'), ("name", "200")),
    (changed("</joint>", '<mimic joint="nobody"/></joint>'), ("j1", "nobody")),
    (changed("</joint>", '<mimic joint="j1"/></joint>'), ("j1", "circle")),
    (changed("</joint>", '<mimic joint="j2"/></joint>', 1).replace(
        '<parent link="l1"/>', '<parent link="l1"/><mimic joint="j1"/>'), ("circle",)),
])
def test_offender_value_and_reason_are_named(source, words):
    message = refusal(source)
    assert all(word in message for word in words), message


def test_locked_joints():
    arm = load_urdf(PLAIN, locked={"j2": 0.4})
    assert arm.joint_names == ("j1",) and "'l2'" in arm.lumped[0]
    q, full = np.array([0.3]), Dynamics(load_urdf(PLAIN))
    assert Dynamics(arm).gravity(q)[0] == pytest.approx(full.gravity([0.3, 0.4])[0], abs=1e-13)
    assert Dynamics(arm).mass_matrix(q)[0, 0] == pytest.approx(full.mass_matrix([0.3, 0.4])[0, 0], abs=1e-13)
    assert Dynamics(arm).tip_pose(q)[1] == pytest.approx(full.tip_pose([0.3, 0.4])[1], abs=1e-15)
    follower = load_urdf((MINI / "mimic_elbow.urdf").read_text(), locked={"j2": 0.1})
    assert follower.joint_names == ("j1",) and len(follower.joints) == 1  # a follower held by itself
    finger = mini("gripper", locked={"left_finger": 0.02})
    assert finger.joint_names == ("wrist",) and len(finger.joints) == 1  # its follower is held with it
    assert "j9" in refusal(PLAIN, locked={"j9": 0.0}) and "j1, j2" in refusal(PLAIN, locked={"j9": 0.0})
    assert "j1" in refusal(PLAIN, locked={"j1": "a\nb"})
    assert "no moving joint" in refusal(PLAIN, locked={"j1": 0.0, "j2": 0.0})
    assert "mapping" in refusal(PLAIN, locked=3)


def test_tip_and_gravity_arguments():
    assert "nowhere" in refusal(PLAIN, tip="nowhere") and "l2" in refusal(PLAIN, tip="nowhere")
    refusal(PLAIN, tip=["l2"])
    assert "gravity" in refusal(PLAIN, gravity="down")
    assert "finite" in refusal(PLAIN, gravity=(0, 0, np.nan))
    branched = load_urdf((MINI / "two_branches.urdf").read_text())
    assert branched.tip is None and len(branched.tips) == 2
    with pytest.raises(ModelError, match="2 tips"):
        Dynamics(branched).jacobian(np.zeros(branched.n))


def test_stray_latin_1_bytes_keep_their_names():
    raw = PLAIN.replace('"j1"', '"jé"').encode("latin-1")
    for source in (raw, raw.decode("utf-8", errors="surrogateescape")):
        with pytest.warns(Warning, match="Latin-1"):
            assert load_urdf(source).joint_names[0] == "jé"
    declared = PLAIN.replace(DECLARED, '<?xml version="1.0" encoding="ISO-8859-1"?>').replace('"j1"', '"jé"')
    assert load_urdf(declared.encode("latin-1")).joint_names[0] == "jé"


def test_default_namespace_and_point_mass_remark():
    assert load_urdf(changed('<robot name="plain">', '<robot name="plain" xmlns="http://example.org/x">')).n == 2
    source = re.sub(r"<inertia [^>]*/>", "", PLAIN, count=1)
    with pytest.warns(Warning, match="l1.*point mass"):
        assert not load_urdf(source).links[0].inertia.any()


def test_undeclared_world_is_accepted_with_a_warning():
    with pytest.warns(Warning, match="world"):
        assert load_urdf(MINI / "world_not_declared.urdf").root == "world"


HOSTILE = ["nan", "-inf", "1e400", "1e308", "1e-320", "0", "-1", "", " ", "1 2", "1,5", "٣", "\u202e", "&#10;", "${x}",
           "a" * 500, "-0.0", "1e12", "base", "l1", "j1", "fixed", "prismatic", "continuous", "floating", "0 0 0",
           "1 0 0", "9 9 9", "1e11 1e11 1e11", "世界", "0x10", "None", "true", "<", "'"]


def mutated(source, rng):
    """One to three hostile changes: an attribute's value, a tag lost or doubled, bytes flipped, a piece moved."""
    for _ in range(rng.choice((1, 1, 3))):
        kind = rng.randint(0, 4)
        tags = list(re.finditer(r"<[^>]*>", source))
        values = list(re.finditer(r'"[^"]*"', source))
        if kind <= 1 and values:
            m = rng.choice(values)
            source = source[:m.start()] + f'"{rng.choice(HOSTILE)}"' + source[m.end():]
        elif kind == 2 and tags:
            m = rng.choice(tags)
            source = source[:m.start()] + m.group() * rng.choice((0, 2)) + source[m.end():]
        elif kind == 3 and source:
            i = rng.randrange(len(source))
            odd = rng.choice((0, 9, 34, 60, 62, 0x85, 0x2028, 0xd800, 0xfeff, 0x1f600))
            source = source[:i] + chr(odd) + source[i + 1:]
        elif len(source) > 40:
            i, j = sorted(rng.randrange(len(source)) for _ in range(2))
            source = source[:i] + source[j:] if rng.random() < 0.5 else source[:j] + source[i:]
    return source


def test_nothing_but_our_own_error_escapes():
    """Mutations of the corpus either load, and then compute without crashing, or are refused in one line."""
    rng = random.Random(20)
    sources = [(MINI / f"{name}.urdf").read_text() for name in GOOD] + [(SHIPPED / "awkward.urdf").read_text()]
    outcomes = {"loaded": 0, "refused": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # an overflow is a fault too
        warnings.simplefilter("ignore", UserWarning)
        for k in range(500):
            source = mutated(rng.choice(sources), rng)
            try:
                arm = load_urdf(source if k % 3 else source.encode("utf-8", errors="surrogatepass"))
            except TwolinkError as error:
                outcomes["refused"] += 1
                assert len(str(error).splitlines()) == 1 and len(str(error)) < 4000
                continue
            outcomes["loaded"] += 1
            assert arm.n >= 1 and all(np.isfinite(link.parameters).all() for link in arm.links)
    assert min(outcomes.values()) > 30, outcomes  # the premise: both ways are taken


def test_urdf_errors_are_value_errors():
    assert issubclass(UrdfError, ValueError)


def test_limits_that_look_like_degrees_are_remarked():
    text = (MINI / "plain.urdf").read_text()
    assert not any("degrees" in remark for remark in load_urdf(text).warnings)  # the premise
    degrees = text.replace('lower="-3" upper="3"', 'lower="-90" upper="90"', 1)
    assert [remark for remark in load_urdf(degrees).warnings if "joint 'j1': limits -90 to 90 rad" in remark]
