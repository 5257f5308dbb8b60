"""Generated conversations, with the ledgers and events that go with them: input of tests of the pure core."""
