"""The settings of an ask, prices and budgets, labels and durations."""
