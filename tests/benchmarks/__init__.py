"""Tests of the benchmarks. They do not check any speed."""
