"""Compiled equations: one trace of the recursive algorithms per arm, and what is emitted from it."""
