"""What compiled gradients call while they run: the record, shadow arrays, raw element access; intrinsics only."""
