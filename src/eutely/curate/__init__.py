"""Curation: a person corrects names, the rest follows; which nucleus to ask about next."""
