"""The intermediate representation: small, immutable, always typed; it knows nothing of Numba."""
