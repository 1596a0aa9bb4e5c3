"""The supervised baseline: cells are what has one name in all specimens (supplement D)."""

from eutely.find.named.cells import cells_by_name, names_of
from eutely.find.named.weights import learn_weights

__all__ = ["cells_by_name", "learn_weights", "names_of"]
