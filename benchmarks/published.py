"""What the paper publishes: accuracy as mean and standard deviation, times in seconds."""

PUBLISHED = {
    "models": {
        "linear dense": {"pre_atlas": (0.949, 0.033), "atlas": (0.955, 0.031)},
        "linear sparse": {"pre_atlas": (0.949, 0.033), "atlas": (0.956, 0.030)},
        "unlearned quadratic": {"pre_atlas": (0.944, 0.027), "atlas": (0.964, 0.018)},
        "full": {"pre_atlas": (0.966, 0.016), "atlas": (0.972, 0.015)},
    },
    "losses": {
        "cycle": {"pre_atlas": (0.965, 0.017), "atlas": (0.970, 0.015)},
        "synchronisation, sparse": {"pre_atlas": (0.966, 0.016), "atlas": (0.972, 0.015)},
    },
    "terms": {
        "centres only": {"pre_atlas": (0.953, 0.024), "atlas": (0.960, 0.021)},
        "radii only": {"pre_atlas": (0.260, 0.189), "atlas": (0.060, 0.011)},
        "no offsets": {"pre_atlas": (0.953, 0.023), "atlas": (0.960, 0.021)},
        "offsets only": {"pre_atlas": (0.967, 0.016), "atlas": (0.958, 0.021)},
        "single re-alignment": {"pre_atlas": (0.963, 0.018), "atlas": (0.971, 0.015)},
        "full": {"pre_atlas": (0.966, 0.016), "atlas": (0.972, 0.015)},
    },
    "additions": {
        "and without warp: the paper's steps": {
            "pre_atlas": (0.966, 0.016),
            "atlas": (0.972, 0.015),
            "test": (0.961, 0.020),
        },
    },
    "sizes": {
        "100": {
            "pre_atlas": (0.966, 0.016),
            "atlas": (0.972, 0.015),
            "test": (0.961, 0.020),
            "supervised_test": (0.964, 0.019),
        },
    },
    "test": {
        "unsupervised": {"accuracy": (0.961, 0.020)},
        "supervised": {"accuracy": (0.964, 0.019)},
        "supervised, offsets, learned weights": {"accuracy": (0.964, 0.019)},
        "supervised, linear": {"accuracy": (0.93, 0.11)},
    },
    "trials": {
        "linear": {"seconds": 146},
        "sparsity": {"seconds": 138},
        "offsets": {"seconds": 272},
        "loss cycle": {"seconds": 10},
        "loss sync-dense": {"seconds": 50},
        "loss sync": {"seconds": 1},
    },
    "times": {
        "aligned": {"seconds": 8 * 3600},
        "costs": {"seconds": 81 * 3600},
        "matched": {"seconds": 9.6 * 3600},
        "synchronised": {"seconds": 46 * 60},
    },
}
"""Section -> row -> figures; the supervised linear row is that of Li et al. (2024)."""
