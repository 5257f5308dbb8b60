"""Encode the responses of all wire families except OpenAI Chat Completions and Anthropic. One module per family."""
