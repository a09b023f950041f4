"""Simulator and dynamics in one process; above 1 kHz the law runs inside the simulator's loop."""
from __future__ import annotations

from .base import run
from .dynamics_node import DynamicsNode
from .simulator_node import SimulatorNode

TOPIC_RATE = 1000.0  # [Hz] up to here the two talk by topics; two hops would fill the period of a faster loop


def compose(simulator=None, dynamics=None):
    """[SimulatorNode, DynamicsNode] with {parameter: value} of each as defaults.

    With `loop_rate` above TOPIC_RATE the simulator calls the law at every step of 1/loop_rate, the topic between them
    is silent and joint_states are decimated.
    """
    simulator, dynamics = dict(simulator or {}), dict(dynamics or {})
    rate = dynamics.get("loop_rate", 0.0)
    if rate > TOPIC_RATE:
        simulator.setdefault("dt", 1.0 / rate)
        simulator.setdefault("joint_state_rate", 100.0)
    nodes = [SimulatorNode(overrides=simulator), DynamicsNode(overrides=dynamics)]
    if rate > TOPIC_RATE:
        nodes[1].direct = True
        nodes[0].by_topic = nodes[1].by_topic = False
        nodes[0].set_law(nodes[1].law, rate)
    return nodes


def main(args=None):
    """Run both nodes in one process until SIGINT or SIGTERM; parameters come from the command line."""
    return run(compose, args)


if __name__ == "__main__":
    raise SystemExit(main())
