"""The project's programs: build support, the demonstration, the tests."""
