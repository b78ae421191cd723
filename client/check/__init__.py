"""Tests of the client against real servers, browsers and terminals."""
