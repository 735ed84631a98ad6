"""Programs to programs, on our IR alone."""
