"""Send requests to providers. This includes resolving targets, admitting requests, counting budgets, looking up prices
and reading answers.
"""
