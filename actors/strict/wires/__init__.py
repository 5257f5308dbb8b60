"""Encode the responses of the wire families other than Chat Completions and Anthropic. One module per family."""
