"""Benchmarks: `make bench` prints every figure beside its target."""
