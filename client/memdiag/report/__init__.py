"""Pure functions from a snapshot and its findings to a document of sections."""
