"""Define the values, events and rules of conversations, without a clock, an event loop or a network."""
