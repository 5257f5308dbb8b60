"""Define lanes and the preview of the next request. A lane is a session's transcript for one binding."""
