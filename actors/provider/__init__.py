"""The provider actor: targets, admission, budgets, prices, credentials, and one request until its answer."""
