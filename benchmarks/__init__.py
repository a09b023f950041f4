"""Figures of speed: ratios in one interleaved run, never part of the tests. `make bench`, or `python -m benchmarks`."""
