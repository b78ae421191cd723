"""The parts of the benchmark programs: arms, rounds, turns, reports."""
