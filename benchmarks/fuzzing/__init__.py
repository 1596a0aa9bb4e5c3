"""Broken and hostile files of every format: seeds, mutations, readers and their oracles."""
