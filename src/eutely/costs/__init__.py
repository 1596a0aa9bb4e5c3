"""Cost terms and sparsification: from specimens and atlases to matching problems."""
