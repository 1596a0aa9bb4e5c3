"""What people ask for, one module each: build, name, annotate, evaluate, match, check."""
