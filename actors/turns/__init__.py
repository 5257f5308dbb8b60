"""What a session does with an ask: what it brings, its turns step by step, and where its events go."""
