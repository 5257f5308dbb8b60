"""Tests of the benchmarks. How fast anything is, is not tested."""
