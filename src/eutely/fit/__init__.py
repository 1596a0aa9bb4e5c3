"""One specimen and an atlas: pose, warp, matching, missing and spurious nuclei, features."""
