"""Encode responses for the wire families other than OpenAI Chat Completions and Anthropic, one module per family."""
