"""Tools that test the engine: an interpreter of the IR, and generators of programs."""
