"""How specimens are brought together: poses by consensus, affine maps, smooth warps."""
