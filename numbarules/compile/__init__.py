"""From a function and argument types to compiled derivatives."""
