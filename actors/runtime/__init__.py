"""Define the runtime, which hosts sessions: it opens and resumes them, and returns their public handles."""
