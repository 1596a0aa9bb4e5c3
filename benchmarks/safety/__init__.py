"""Commands that end anywhere, files from strangers, several windows: nothing is lost or false."""
