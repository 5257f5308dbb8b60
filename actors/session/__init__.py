"""The session actor, and the driver that runs the turns of an ask step by step."""
