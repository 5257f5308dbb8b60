"""Define a session's transcript for one binding, and the preview of the next request."""
