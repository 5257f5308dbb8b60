"""The runtime under load for a long time: `python -m tests.commands.soak --help`."""
