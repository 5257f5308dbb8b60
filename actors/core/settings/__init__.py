"""Define the settings of asks, prices, budgets, titles, metadata and durations."""
