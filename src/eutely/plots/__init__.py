"""Figures of an atlas and of how it came about: what they show, and drawing it for papers."""
