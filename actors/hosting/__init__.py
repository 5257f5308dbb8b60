"""How a runtime hosts its sessions: which are open, which keep actors, and how one comes back or goes for good."""
