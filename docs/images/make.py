"""Make the pictures of the documentation: ``python docs/images/make.py`` (needs matplotlib)."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import PIL.Image
from matplotlib import colormaps
from matplotlib.colors import hsv_to_rgb, rgb_to_hsv
from matplotlib.figure import Figure
from scipy.ndimage import gaussian_filter

from eutely import Specimen, simulate
from eutely.simulation import Plan, Variation, body_plan

HERE = Path(__file__).parent
NIGHT = np.array([0.035, 0.045, 0.075])
SUN = np.array([-0.35, 0.65, 0.68])
FINE = 2  # pixels are averages of FINE x FINE

Image = np.ndarray


def colours(plan: Plan) -> dict[str, np.ndarray]:
    """Return a colour for every cell: hue runs along the body, neighbours differ a little."""
    random = np.random.default_rng(4)
    place = plan.centroids[:, 0].argsort().argsort() / len(plan.names)
    hue = np.clip(0.97 - 0.94 * place + random.uniform(-0.05, 0.05, len(place)), 0, 1)
    rgb = colormaps["turbo"](0.06 + 0.86 * hue)[:, :3]
    hsv = rgb_to_hsv(rgb)
    hsv[:, 1] *= random.uniform(0.6, 0.95, len(place))
    hsv[:, 2] = random.uniform(0.85, 1.0, len(place))
    return dict(zip(plan.names, hsv_to_rgb(hsv), strict=True))


def paint(canvas: Image, worm: Specimen, paint_of: dict[str, np.ndarray], scale: float) -> None:
    """Paint ellipsoids, lit from above; x to the right, y up, z to the eye; units are pixels."""
    height, width = canvas.shape[:2]
    front = np.full((height, width), -np.inf)
    light = SUN / np.linalg.norm(SUN)
    glance = light + [0, 0, 1]
    glance /= np.linalg.norm(glance)
    axes = worm.axes / (worm.radii[:, :, None] * scale)
    forms = np.einsum("nac,nad->ncd", axes, axes)  # d' F d = 1 on the surface
    depth = worm.centroids[:, 2]
    near = (depth - depth.min()) / np.ptp(depth)
    for row, (x, y, z) in enumerate(worm.centroids * scale):
        form, reach = forms[row], int(np.ceil(worm.radii[row, 0] * scale)) + 1
        left, top = max(int(x) - reach, 0), max(int(height - y) - reach, 0)
        patch = np.s_[top : int(height - y) + reach, left : int(x) + reach]
        rows, columns = np.mgrid[patch]
        dx, dy = columns + 0.5 - x, height - rows - 0.5 - y
        half = (form[0, 2] * dx + form[1, 2] * dy) / form[2, 2]
        rest = form[0, 0] * dx**2 + 2 * form[0, 1] * dx * dy + form[1, 1] * dy**2 - 1
        inside = half**2 - rest / form[2, 2]
        dz = -half + np.sqrt(np.maximum(inside, 0))
        seen = (inside > 0) & (z + dz > front[patch])
        normal = np.stack([dx, dy, dz], axis=-1) @ form
        normal /= np.linalg.norm(normal, axis=-1, keepdims=True) + 1e-12
        lit = 0.34 + 0.64 * np.maximum(normal @ light, 0) + 0.14 * np.maximum(normal[..., 2], 0)
        shine = 0.45 * np.maximum(normal @ glance, 0) ** 40
        haze = 0.65 + 0.35 * near[row]
        colour = paint_of[worm.names[row]] * (lit * haze)[..., None] + (shine * haze)[..., None]
        front[patch] = np.where(seen, z + dz, front[patch])
        canvas[patch] = np.where(seen[..., None], np.clip(colour, 0, 1), canvas[patch])


def glow(canvas: Image, worm: Specimen, scale: float) -> None:
    """Shine the body faintly through around its nuclei."""
    height = canvas.shape[0]
    body = np.zeros(canvas.shape[:2])
    x, y = (worm.centroids[:, :2] * scale).T
    np.add.at(body, (np.clip(height - y, 0, height - 1).astype(int), x.astype(int)), 1.0)
    near = gaussian_filter(body, 13 * scale)
    skin = np.clip(near / near.max() * 14, 0, 1)
    skin = gaussian_filter(skin * skin * (3 - 2 * skin), 2 * scale)
    canvas += (0.07 * skin + 0.10 * np.sqrt(near / near.max()))[..., None] * [0.45, 0.62, 1.0]


def threads(canvas: Image, worms: list[Specimen], paint_of: dict[str, np.ndarray], scale: float):
    """Draw a thread from some cells to the same cells of the next worm."""
    height = canvas.shape[0]
    random = np.random.default_rng(1)
    chosen = random.choice(sorted(paint_of), 46, replace=False)
    blend = np.linspace(0, 1, 4000)
    bow = blend**2 * (3 - 2 * blend)
    for upper, lower in pairwise(worms):
        for name in chosen:
            start = upper.centroids[upper.names.index(name)] * scale
            end = lower.centroids[lower.names.index(name)] * scale
            x = start[0] + (end[0] - start[0]) * bow
            y = start[1] + (end[1] - start[1]) * blend
            for step in range(FINE):
                rows, columns = (height - y).astype(int), (x + step).astype(int)
                canvas[rows, columns] = 0.55 * canvas[rows, columns] + 0.45 * paint_of[name] * 0.6


def worm_picture(width: int = 1600, height: int = 560) -> None:
    """Paint three individuals of one organism, each cell in its colour."""
    plan = body_plan()
    bends = Variation(size=(0.03, 0.05, 0.05), bend=(0.016, 0.006), twist=25.0)
    worms = simulate(3, seed=5, variation=bends, pose="none")
    tilt = np.radians(22)
    turn = np.array(
        [[-1.0, 0, 0], [0, np.cos(tilt), -np.sin(tilt)], [0, -np.sin(tilt), -np.cos(tilt)]]
    )
    assert np.linalg.det(turn) > 0
    paint_of = colours(plan)
    span = 1.06 * max(np.ptp(worm.centroids[:, 0]) for worm in worms)
    scale = width * FINE / span
    canvas = np.tile(NIGHT, (height * FINE, width * FINE, 1))
    placed = []
    for number, worm in enumerate(worms):
        turned = worm.moved(turn, np.zeros(3))
        box = turned.centroids.min(axis=0), turned.centroids.max(axis=0)
        middle = np.array([span / 2, span * height / width * (2.5 - number) / 3, 0])
        placed.append(turned.moved(np.eye(3), middle - (box[0] + box[1]) / 2))
    for worm in placed:
        glow(canvas, worm, scale)
    threads(canvas, placed, paint_of, scale)
    for worm in placed:
        paint(canvas, worm, paint_of, scale)
    small = canvas.reshape(height, FINE, width, FINE, 3).mean(axis=(1, 3))
    save(np.clip(small, 0, 1), HERE / "worm.png")


def save(picture: Image, path: Path) -> None:
    """Write a PNG with a palette: a third of the size, and the eye does not notice."""
    pixels = PIL.Image.fromarray((picture * 255 + 0.5).astype(np.uint8))
    pixels.quantize(256, dither=PIL.Image.Dither.NONE).save(path, optimize=True)


def statistics_picture() -> None:
    """Draw a simulated worm, and its statistics beside those of real worms."""
    result = json.loads((HERE.parents[1] / "benchmarks/results/simulate.json").read_text())
    figures = result["figures"]
    worm = simulate(1, pose="none")[0]
    shade = np.array([colours(body_plan())[name] for name in worm.names])
    figure = Figure(figsize=(10, 6.4), layout="constrained")
    grid = figure.add_gridspec(3, 3, height_ratios=[0.75, 0.75, 2])
    for row, (axis, sides) in enumerate([(1, "belly to back"), (2, "left to right")]):
        view = figure.add_subplot(grid[row, :])
        order = np.argsort(worm.centroids[:, 3 - axis])
        x, y = worm.centroids[order][:, [0, axis]].T
        view.scatter(-x, y, s=26, c=shade[order], edgecolors="k", linewidths=0.3, clip_on=False)
        view.set(aspect="equal", ylabel=sides, xticks=[], yticks=[])
        view.spines[:].set_visible(False)
    view.set_xlabel("head to tail")
    tints = {"real": "0.25", "simulated": "tab:orange"}

    spread = figure.add_subplot(grid[2, 0])
    for number, (cohort, tint) in enumerate(tints.items()):
        place = np.arange(3) + 0.36 * (number - 0.5)
        spread.bar(place, figures[cohort]["SD of the residual x, y, z"], 0.34, color=tint)
    spread.set(title="what an affine fit leaves", ylabel="SD of the residual", xticks=range(3))
    spread.set_xticklabels(["along", "belly-back", "left-right"])

    shared = figure.add_subplot(grid[2, 1])
    gaps = [key for key in figures["real"] if key.startswith("correlation at distance")]
    middle = [np.mean([float(end) for end in key.split()[-1].split("-")]) for key in gaps]
    for cohort, tint in tints.items():
        rows = np.array([figures[cohort][key] for key in gaps])
        for axis, style in enumerate(["-", "--", ":"]):
            label = ["along", "belly-back", "left-right"][axis] if cohort == "real" else None
            shared.plot(middle, rows[:, axis], style, color=tint, marker="o", ms=3, label=label)
    shared.legend(frameon=False, handlelength=3)
    shared.set(title="how much neighbours share", xlabel="distance of two cells")
    shared.set(ylabel="correlation of residuals", ylim=(0, None))

    right = figure.add_subplot(grid[2, 2])
    kinds = {
        "plain": "right by linear assignment, plain",
        "weighted\nby SD": "right by linear assignment, weighted by SD",
        "after\na warp": "the same after a warp along the body",
    }
    for number, (cohort, tint) in enumerate(tints.items()):
        place = np.arange(3) + 0.36 * (number - 0.5)
        share = [figures[cohort][key] for key in kinds.values()]
        right.bar(place, share, 0.34, color=tint, label=cohort)
    right.set(title="cells that linear assignment finds", ylim=(0.8, 1), xticks=range(3))
    right.set_xticklabels(kinds)
    right.legend(frameon=False)
    for plot in (spread, shared, right):
        plot.spines[["top", "right"]].set_visible(False)
        plot.title.set_fontsize(10)
    figure.savefig(HERE / "simulate.png", dpi=110)


if __name__ == "__main__":
    worm_picture()
    statistics_picture()
