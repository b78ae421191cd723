"""The shapes of data that all rooms share. Nothing here does input or output."""
