"""Send requests to providers: resolve targets, admit requests, track budgets, look up prices and read answers."""
