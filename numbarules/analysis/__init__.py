"""Facts about programs: pure functions from the IR to frozen records."""
