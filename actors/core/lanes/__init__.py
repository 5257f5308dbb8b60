"""Define lanes, which are a session's transcripts for one binding each, and the preview of the next request."""
