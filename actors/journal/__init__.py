"""The journal actor, the log of a session, its readers, and the storages."""
