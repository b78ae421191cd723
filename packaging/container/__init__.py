"""The container image: how it is made, its entry point and its health check."""
