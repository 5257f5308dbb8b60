"""Define the state of a lane's rendering, its ids and names, and the report of a render."""
