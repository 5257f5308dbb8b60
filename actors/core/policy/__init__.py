"""Routing, pacing, fairness, shared budgets, and facts learned from refusals."""
