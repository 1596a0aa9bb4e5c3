"""What specimens of one origin share: handedness, shift, and the cells that an atlas lacks."""
