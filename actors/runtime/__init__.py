"""The runtime: it hosts sessions, opens and resumes them, and gives handles to callers."""
