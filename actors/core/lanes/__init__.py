"""The transcript that a session has sent to a binding, and the preview of the next request."""
