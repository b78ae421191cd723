"""Where the server is and a session with it."""
