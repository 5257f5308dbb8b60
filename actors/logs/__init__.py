"""A session's log as its actors write it and its readers see it, the bytes it holds, and outages of its journal."""
