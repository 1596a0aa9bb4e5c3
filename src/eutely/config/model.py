"""The settings: a section for each step of the method, frozen and checked."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from eutely.errors import ConfigError


def setting(default: object, what: str, raising: str = "", unit: str = "", **bounds: Any) -> Any:
    """Describe one setting.

    ``what`` it is, one or two sentences; what ``raising`` it does, "" where higher means nothing;
    its ``unit``, "" for a pure number; ``bounds``: ``ge``, ``gt``, ``le``, ``lt`` as in pydantic.
    """
    extra: dict[str, Any] = {"raising": raising, "unit": unit}
    return Field(default=default, description=what, json_schema_extra=extra, **bounds)


class Section(BaseModel):
    """What all sections have in common: unknown keys and values of another type are errors."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, validate_default=True, allow_inf_nan=False
    )

    def __init__(self, *given: object, **values: Any) -> None:
        if given:
            raise ConfigError("settings have names: Config(seed=1); config='paper' is a preset")
        try:
            super().__init__(**values)
        except ValidationError as error:
            from eutely.config.resolve import line_of

            raise ConfigError(f"{type(self).__name__}: {line_of(error)}") from None

    def __setattr__(self, name: str, value: object) -> None:
        raise ConfigError(f"settings stay as they are; make others: Config({name}={value!r})")

    # Sections inside of others are checked as parts of the whole, which knows their place.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]


class Costs(Section):
    """Costs of matching one specimen with another."""

    neighbours: int = setting(
        6,
        "Nearest neighbours of each nucleus whose offsets are compared (the graph is made "
        "symmetric, so that a nucleus can have more).",
        "weighs the arrangement of nuclei more and makes matching slower in proportion.",
        "nuclei",
        ge=1,
        le=1000,
    )


class Realign(Section):
    """Affine re-alignment of all specimens to a target, before and after learning."""

    iterations: int = setting(
        7,
        "Rounds of matching to the target and fitting an affine map to the matches.",
        "costs time in proportion; beyond convergence it changes nothing.",
        "rounds",
        ge=0,
        le=1000,
    )
    trim: float = setting(
        0.1,
        "Share of the matches with the largest residuals that a fit leaves out.",
        "makes fits safer against wrong matches, and less exact without any.",
        "share of matches",
        ge=0.0,
        lt=0.5,
    )
    stretch: float = setting(
        1.5,
        "Largest factor by which a fit may stretch or squeeze a specimen along any axis; this "
        "keeps a specimen in a wrong pose from collapsing.",
        "allows specimens of more different shape, and worse failures.",
        "factor",
        gt=1.0,
        le=100.0,
    )
    base: bool = setting(
        False,
        "Whether a supervised build first fits all specimens to one of them by affine maps, as in "
        "the paper; without 'realign.warp' it does in any case.",
    )
    scale: bool = setting(
        True,
        "Whether specimens are brought to one length and width before they are compared.",
    )
    warp: bool = setting(
        True,
        "Whether specimens are also bent, twisted and stretched smoothly along the body, to the "
        "mean of all (by the method 'learn' after learning); the paper has affine maps only.",
    )


class Learn(Section):
    """Learning the costs by Bayesian optimisation in three stages, without any name."""

    specimens: int = setting(
        15,
        "Specimens that the costs are learned on; all of them if there are fewer.",
        "makes learning steadier; time grows with its square.",
        "specimens",
        ge=2,
        le=100_000,
    )
    loss: Literal["sync", "sync-dense", "cycle"] = setting(
        "sync",
        "What a trial minimises: 'sync', the matches that sparse synchronisation gives up, "
        "'sync-dense', those of dense synchronisation, or 'cycle', the inconsistent triples.",
    )
    trials_linear: int = setting(
        100,
        "Trials of stage 1: variances of centroids and radii.",
        "finds better costs, with smaller and smaller gains; time in proportion.",
        "trials",
        ge=0,
        le=1_000_000,
    )
    trials_sparsity: int = setting(
        100,
        "Trials of stage 2: which assignments are allowed at all.",
        "finds sparser problems of the same quality; time in proportion.",
        "trials",
        ge=0,
        le=1_000_000,
    )
    trials_offsets: int = setting(
        100,
        "Trials of stage 3: variances of the offsets between neighbours.",
        "finds better costs, with smaller and smaller gains; time in proportion.",
        "trials",
        ge=0,
        le=1_000_000,
    )
    c0: float = setting(
        10000.0,
        "Cost of leaving a nucleus unmatched while learning; far above any other cost, so that "
        "as many as possible are matched and a trial cannot win by matching nothing.",
        "changes nothing once it is above all other costs.",
        "cost",
        ge=0.001,
        le=1e9,
    )
    most_candidates: int = setting(
        12000,
        "Allowed assignments of a pair of specimens, in the mean, that stage 2 may choose.",
        "allows denser problems: slower, and safer where specimens differ much.",
        "assignments",
        ge=1,
        le=10**9,
    )
    tolerance: float = setting(
        0.0005,
        "Share by which stage 2 may miss its lowest loss for the sake of sparser problems.",
        "gives sparser, faster, slightly worse problems.",
        "share of the loss",
        ge=0.0,
        le=1.0,
    )


class Multi(Section):
    """Matching all specimens with each other at once."""

    synchronisation: Literal["dense", "sparse"] = setting(
        "dense",
        "How matchings of pairs become consistent: 'dense' votes over all assignments, 'sparse' "
        "over those that a pair allows.",
    )
    c0: float = setting(
        40.0,
        "Cost of leaving a nucleus unmatched in the matchings of pairs after learning.",
        "leaves fewer nuclei unmatched, and forces more wrong matches.",
        "cost",
        ge=0.001,
        le=1e9,
    )
    partners: int = setting(
        0,
        "Specimens that each one is matched with, drawn at random; 0 for all others: then the time "
        "grows with the square of the number of specimens.",
        "gives more votes on each match; time in proportion.",
        "specimens",
        ge=0,
        le=100_000,
    )


class Atlas(Section):
    """The atlas of the method 'learn', and matching a specimen with it."""

    model: Literal["joint", "offsets"] = setting(
        "joint",
        "How specimens are matched with the atlas: 'joint', cells that predict each other, as by "
        "the method 'refine'; or 'offsets', the paper's quadratic costs, with weights from what "
        "was learned (in a supervised build by 'learn.trials_offsets' trials).",
    )
    rounds: int = setting(
        2,
        "Rounds after cells were found in which each specimen is matched again, to the atlas of "
        "others; only with 'realign.warp'. The paper has none.",
        "changes little after two; time in proportion.",
        "rounds",
        ge=0,
        le=1000,
    )
    c0: float = setting(
        10000.0,
        "Cost of leaving a nucleus without a cell of the atlas, by the model 'offsets'.",
        "leaves fewer nuclei without a cell; lower it for specimens with spurious nuclei.",
        "cost",
        ge=0.001,
        le=1e9,
    )


class Estimate(Section):
    """Estimating the atlas from specimens whose cells are known or have been found."""

    prior: float = setting(
        10.0,
        "Specimens that the typical covariance of all cells counts for in the covariance of each.",
        "steadies atlases from few specimens and blurs the differences between cells.",
        "specimens",
        ge=1.0,
        le=1e6,
    )
    freedom: float = setting(
        8.0,
        "Degrees of freedom of the Student-t distributions of places and costs.",
        "trusts outliers more; at 30 the costs are nearly Gaussian.",
        "degrees of freedom",
        ge=1.0,
        le=30.0,
    )
    neighbours: int = setting(
        30,
        "Cells that predict the place of each cell, those most correlated with it.",
        "predicts slightly better, and takes memory and time in proportion.",
        "cells",
        ge=1,
        le=1000,
    )
    shrinkage: float = setting(
        100.0,
        "Specimens that the prior counts for in the correlations between cells.",
        "makes displacements more like those of a smooth sheet of rubber.",
        "specimens",
        ge=10.0,
        le=1e6,
    )
    strength: float = setting(
        0.8,
        "Correlation, in the prior, of the displacements of cells next to each other.",
        "trusts neighbours more.",
        "correlation",
        ge=0.0,
        le=0.99,
    )
    length: float = setting(
        1.5,
        "Distance, in cell spacings, over which the correlation of the prior falls to 37%.",
        "makes larger regions move together.",
        "spacings",
        ge=0.01,
        le=1000.0,
    )
    fade: float = setting(
        4.5,
        "Distance, in cell spacings, at which correlations that are seen are trusted by 61%.",
        "keeps correlations of more distant cells, and more that are due to chance.",
        "spacings",
        ge=0.01,
        le=1000.0,
    )
    features: str = setting(
        "all",
        "What counts besides places: 'all' numeric columns and the radii, 'none', or names with "
        "commas between them ('radius' for the radii). They count relative to the specimen, and "
        "only as far as they agree between specimens.",
    )
    fewest: int = setting(
        3,
        "Specimens in which a cell must be seen not to be flagged as rare.",
        "flags more cells.",
        "specimens",
        ge=1,
        le=10**6,
    )


class Refine(Section):
    """Rounds of matching all specimens to the atlas so far and estimating it again."""

    linear_rounds: int = setting(
        3,
        "Rounds in which specimens are warped to the mean and cells matched one by one.",
        "helps where the target is unlike the others; time in proportion.",
        "rounds",
        ge=1,
        le=1000,
    )
    targets: int = setting(
        5,
        "Specimens whose nuclei are the first cells, one after the other; the solutions are fused "
        "region by region. Twice as many where a hundredth of the nuclei or more is missing.",
        "makes the result depend less on each of them; time in proportion.",
        "specimens",
        ge=1,
        le=100_000,
    )
    target_rounds: int = setting(
        2,
        "Rounds for each target but the first before it is fused; cells predict each other.",
        "compares better solutions; time in proportion.",
        "rounds",
        ge=1,
        le=1000,
    )
    common: float = setting(
        0.3,
        "Share of the specimens that must have a nucleus at one place, and no cell for it, for a "
        "new cell to be added there.",
        "adds fewer cells that the targets lack.",
        "share of specimens",
        ge=0.001,
        le=1.0,
    )
    rare: float = setting(
        0.25,
        "Cells seen in less than this share of the usual number of specimens are removed.",
        "removes more cells that are due to spurious nuclei, and more that are often missed.",
        "share of specimens",
        ge=0.0,
        lt=1.0,
    )
    joint_rounds: int = setting(
        5,
        "Rounds after fusion; before all but the first and the last, cells that are easily "
        "confused are split again.",
        "changes little after four; time in proportion.",
        "rounds",
        ge=0,
        le=1000,
    )
    folds: int = setting(
        5,
        "Parts of the cohort, each matched to the atlas of the others, so that no specimen finds "
        "its own errors confirmed.",
        "gives each part a better atlas; time for estimating in proportion.",
        "parts",
        ge=2,
        le=100_000,
    )


class Config(Section):
    """All settings of a run."""

    seed: int = setting(
        0, "Where all random choices start; the same seed gives the same bytes.", ge=0, lt=2**63
    )
    method: Literal["refine", "learn", "named"] = setting(
        "refine",
        "How cells are found: 'refine' starts from the nuclei of several specimens and improves "
        "them round by round (sections refine, estimate); 'learn' is the paper's method, costs "
        "learned by trials and all pairs matched with them (realign, learn, multi, atlas); 'named' "
        "takes names for cells, as eutely build --supervised does.",
    )
    costs: Costs = Costs()
    realign: Realign = Realign()
    learn: Learn = Learn()
    multi: Multi = Multi()
    atlas: Atlas = Atlas()
    refine: Refine = Refine()
    estimate: Estimate = Estimate()

    def __repr__(self) -> str:
        from eutely.config.text import differing

        return f"<Config: {differing(self)}>"

    __str__ = __repr__

    def value(self, key: str) -> Any:
        """Return the setting or section with a dotted key, ready for JSON."""
        value: Any = self
        for name in key.split("."):
            value = getattr(value, name)
        return value.model_dump(mode="json") if isinstance(value, Section) else value
