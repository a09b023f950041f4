"""Sensors: each effect alone, from one seed."""

import numpy as np
import pytest

from twolink_dynamics import InputError
from twolink_dynamics.sensors import Sensors

Q, QD = np.array([0.1234567, -1.0]), np.array([0.5, 2.0])


def readings(sensors, count=4000, dt=1e-3):
    return [sensors.measure(k * dt, Q, QD) for k in range(count)]


def test_perfect_sensors_copy_the_truth():
    sensors = Sensors()
    sample = sensors.measure(1.5, Q, QD)
    assert sensors.perfect and sample.t == 1.5 and sample.q.tolist() == Q.tolist() and sample.qd.tolist() == QD.tolist()
    assert sample.q is not Q
    q, qd = sample
    assert q is sample.q and qd is sample.qd


def test_noise_has_the_given_spread_and_no_bias():
    samples = readings(Sensors(position_noise=[1e-3, 0.0], velocity_noise=0.05, seed=3))
    q, qd = np.array([s.q for s in samples]), np.array([s.qd for s in samples])
    assert q[:, 0].std() == pytest.approx(1e-3, rel=0.05) and q[:, 0].mean() == pytest.approx(Q[0], abs=1e-4)
    assert (q[:, 1] == Q[1]).all()
    assert qd.std(axis=0) == pytest.approx([0.05, 0.05], rel=0.05)


def test_quantisation_rounds_to_the_encoder_step():
    sample = Sensors(position_quantum=2 * np.pi / 4096, velocity_quantum=[0.0, 0.3]).measure(0.0, Q, QD)
    step = 2 * np.pi / 4096
    assert sample.q / step == pytest.approx(np.round(sample.q / step), abs=1e-9)
    assert np.abs(sample.q - Q).max() <= step / 2 and sample.q[0] != Q[0]
    assert sample.qd == pytest.approx([0.5, 2.1])


def test_delay_brings_old_samples_with_the_time_they_were_taken():
    sensors = Sensors(delay=0.003)
    seen = [sensors.measure(k * 1e-3, [float(k)], [0.0]) for k in range(10)]
    assert seen[:3] == [None, None, None]
    assert [s.q[0] for s in seen[3:]] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert seen[5].t == pytest.approx(0.002)


def test_drops_happen_as_often_as_asked():
    lost = sum(s is None for s in readings(Sensors(drop=0.2, seed=1)))
    assert lost == pytest.approx(800, abs=100)


def test_same_seed_same_readings_and_reset():
    make = lambda seed: Sensors(1e-3, 1e-2, 1e-4, 0.0, 0.002, 0.1, seed)  # noqa: E731

    def numbers(sensors):
        return [None if s is None else (s.t, *s.q, *s.qd) for s in readings(sensors, 200)]

    one = make(5)
    first = numbers(one)
    assert first == numbers(make(5)) and first != numbers(make(6))
    one.reset()
    assert numbers(one) == first


def test_one_effect_off_leaves_the_others_as_they_were():
    noisy = readings(Sensors(position_noise=1e-3, seed=2), 50)
    both = readings(Sensors(position_noise=1e-3, drop=0.3, seed=2), 50)
    kept = [(a, b) for a, b in zip(noisy, both) if b is not None]
    assert 20 < len(kept) < 50 and all((a.q == b.q).all() for a, b in kept)


@pytest.mark.parametrize(
    "settings, message",
    [
        (dict(position_noise=-1.0), "position_noise"),
        (dict(velocity_quantum=np.nan), "velocity_quantum"),
        (dict(delay=-0.1), "delay"),
        (dict(drop=1.0), "drop"),
        (dict(seed=-1), "seed"),
        (dict(position_noise="a"), "position_noise"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        Sensors(**settings)
