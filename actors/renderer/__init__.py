"""The renderer actor, which owns a session's lanes: the transcript that each binding has received."""
