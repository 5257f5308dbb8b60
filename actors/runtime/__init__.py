"""Host sessions: enter a runtime, open and resume sessions, and return their public handles."""
