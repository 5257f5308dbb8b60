"""The session actor, and the turn driver that runs the turns of an ask."""
