"""Everything that opens a file."""
