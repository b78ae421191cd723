"""Makes the packages: see packaging/build."""
