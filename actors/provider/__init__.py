"""Send requests to providers: resolve targets, admit requests, count budgets, look up prices, and read answers."""
