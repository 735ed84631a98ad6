"""Reports of what the rules do: to one function (`explain`), to one type (`capture_audit`)."""
