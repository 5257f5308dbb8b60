"""Between a turn and a provider: targets, admission, budgets, prices, and one request until it is answered."""
