"""Interleaved timing: every contender has its turn in every round, so that a busy machine slows all of them alike.

The clock is the CPU time of the calling thread, which other processes do not add to; where several threads work (the
contender's name says so) it is the wall's.
"""
from __future__ import annotations

import statistics
import time

ROUNDS, SLICE = 9, 0.02  # rounds, and seconds per contender and round


class Contender:
    """name, call() and how many units of work one call does; `again` calls make a slice of time."""

    def __init__(self, name, call, units=1):
        self.name, self.call, self.units, self.times = name, call, units, []
        self.clock = time.perf_counter if "threads" in name else time.thread_time
        call()
        call()
        again, took = 1, 0.0
        while took < SLICE / 4 and again < 10**6:
            again *= 4 if took < SLICE / 40 else 2
            took = self.slice(again) * again * units
        self.again = max(1, int(again * SLICE / max(took, 1e-9)))

    def slice(self, again):
        """Seconds per unit over `again` calls."""
        call, clock = self.call, self.clock
        start = clock()
        for _ in range(again):
            call()
        return (clock() - start) / (again * self.units)


def race(contenders, against=None, rounds=ROUNDS):
    """[{name, ns (best), median_ns, ratio}] of {name: (call, units)}; ratio is the median over rounds of
    time(against) / time(name)."""
    ready, missing = [], {}
    for name, (call, units) in contenders.items():
        try:
            ready.append(Contender(name, call, units))
        except Exception as error:  # a peer that fails here is reported, and the others go on
            missing[name] = f"{type(error).__name__}: {error}".splitlines()[0][:80]
    for _ in range(rounds):
        for contender in ready:
            contender.times.append(contender.slice(contender.again))
    base = next((c for c in ready if c.name == against), None)
    table = []
    for c in ready:
        ratio = None if base is None else statistics.median(b / t for b, t in zip(base.times, c.times))
        table.append({"name": c.name, "ns": 1e9 * min(c.times), "median_ns": 1e9 * statistics.median(c.times),
                      "ratio": ratio})
    return table + [{"name": name, "missing": why} for name, why in missing.items()]


def show(title, table, unit="ns"):
    """Prints one race."""
    print(f"\n{title}")
    for row in table:
        if "missing" in row:
            print(f"  {row['name']:34} -  ({row['missing']})")
        else:
            ratio = "" if row["ratio"] is None else f"{row['ratio']:9.2f} x"
            print(f"  {row['name']:34}{row['ns']:12.1f} {unit}{ratio}")
