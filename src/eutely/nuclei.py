"""Ellipsoids from a label volume: connected pieces and their moments in one pass over blocks.

A label volume comes in blocks that never need to be in memory together. Along x, a block is a
sequence of runs of equal labels::

    z, y:   0 0 7 7 7 7 0 0 4 4 0        runs  7: [2, 6)   4: [8, 10)

A run joins the pieces of its label that it touches in the row before (y - 1) and in the plane
before (z - 1), also in the block before (union-find). Each piece sums count, coordinates and their
products as integers, so that nothing is lost to rounding; mean and covariance follow at the end.
Pieces distinguish a nucleus from stray voxels of the same label.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from eutely.errors import SpecimenError
from eutely.kernel import inner, kernel
from eutely.specimen import MICROMETRE, Specimen

Block = tuple[NDArray[np.integer], tuple[int, int, int]]
"""Labels of a part of the volume, axes z, y, x, and the index of its first voxel."""

Table = NDArray[np.int64]
"""One row per connected piece (or label), with the columns below."""

PARENT, LABEL, COUNT, BORDER = 0, 1, 2, 3
"""Columns: parent piece in union-find, label, number of voxels, whether it touches the border."""

FIRST, SECOND, WIDTH = 4, 7, 13
"""First columns of the sums of x y z and of xx yy zz xy xz yz, and number of columns."""

STRAY = 0.1
"""Share of its label's voxels below which a piece does not count towards the ellipsoid."""

CROWD = 500_000
"""Number of pieces from which the volume may be an intensity image instead of labels."""


def measure(
    blocks: Iterable[Block],
    shape: tuple[int, int, int],
    voxel_size: tuple[float, float, float],
    name: str,
) -> Specimen:
    """Return the nuclei of a label volume as ellipsoids.

    The semi-axes are those of the solid ellipsoid with the covariance of the nucleus's voxels,
    ``sqrt(5 * eigenvalue)``, and at least half the smallest side of a voxel. Pieces with less
    than a tenth of their label's voxels are strays and do not count.

    Parameters
    ----------
    blocks
        labels (0: background) of any integer type: a grid of blocks in the order z, y, x.
    shape
        of the whole volume, z, y, x.
    voxel_size
        x, y, z in micrometres; the voxel of index i has its centre at ``i * voxel_size``.
    name
        of the specimen.

    Returns
    -------
    Specimen
        in micrometres, in the order of labels, with the features ``voxels`` (of the label),
        ``detached`` (voxels outside its largest piece) and ``border`` (1 if the nucleus touches the
        border of the volume). A label of one voxel has no axes (NaN).
    """
    pieces = _pieces(blocks, shape, name)
    if not len(pieces):
        raise SpecimenError(
            f"{name}: all voxels are 0, expected a positive label for each nucleus; check the file"
        )
    labels, slot = np.unique(pieces[:, LABEL], return_inverse=True)
    counts = pieces[:, COUNT]
    voxels, largest = np.zeros((2, len(labels)), dtype=np.int64)
    np.add.at(voxels, slot, counts)
    np.maximum.at(largest, slot, counts)
    # If no piece of a label has a tenth of its voxels, all pieces count.
    kept = (counts >= STRAY * voxels[slot]) | (largest < STRAY * voxels)[slot]
    total = np.zeros((len(labels), WIDTH), dtype=np.int64)
    np.add.at(total, slot[kept], pieces[kept])
    centroids, radii, axes = ellipsoids(total, np.asarray(voxel_size, dtype=np.float64))
    return Specimen(
        name=name,
        ids=labels,
        centroids=centroids,
        radii=radii,
        axes=axes,
        features={
            "voxels": voxels.astype(np.float64),
            "detached": (voxels - largest).astype(np.float64),
            "border": (total[:, BORDER] > 0).astype(np.float64),
        },
        unit=MICROMETRE,
    )


def ellipsoids(
    total: Table, voxel_size: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return centroids (n, 3), semi-axes (n, 3) and axes (n, 3, 3) from sums over voxels."""
    count = total[:, COUNT, None]
    first, second = total[:, FIRST:SECOND], total[:, SECOND:WIDTH]
    # Relative to integers near the centroid, products of large indices cancel exactly.
    near = first // count
    left, right = np.array([0, 1, 2, 0, 0, 1]), np.array([0, 1, 2, 1, 2, 2])
    about = (
        second
        - near[:, left] * first[:, right]
        - near[:, right] * first[:, left]
        + count * near[:, left] * near[:, right]
    )
    rest = (first - count * near) / count
    flat = about / count - rest[:, left] * rest[:, right]
    covariance = np.empty((len(total), 3, 3))
    covariance[:, left, right] = covariance[:, right, left] = (
        flat * voxel_size[left] * voxel_size[right]
    )
    values, vectors = np.linalg.eigh(covariance)
    radii = np.sqrt(5 * np.maximum(values[:, ::-1], 0))
    axes = np.ascontiguousarray(np.swapaxes(vectors, 1, 2)[:, ::-1])
    # The sign of an axis is arbitrary: its largest entry is positive, the system right-handed.
    lead = np.take_along_axis(axes, np.abs(axes).argmax(axis=2)[:, :, None], axis=2)
    axes *= np.where(lead < 0, -1.0, 1.0)
    axes[:, 2] = np.cross(axes[:, 0], axes[:, 1])
    axes[total[:, COUNT] == 1] = np.nan
    return (near + rest) * voxel_size, np.maximum(radii, voxel_size.min() / 2), axes


def _pieces(blocks: Iterable[Block], shape: tuple[int, int, int], name: str) -> Table:
    """Return the connected pieces of all blocks."""
    table = np.zeros((1024, WIDTH), dtype=np.int64)
    used, voxels = 0, 0
    faces: dict[tuple[int, int, int, int], NDArray[np.int32]] = {}
    for given, (z, y, x) in blocks:
        block, words, limit = unsigned(given)
        depth, height, width = block.shape
        size = ((height, width), (depth, width), (depth, height))
        # Pieces in the last plane, row and column of the blocks before; -1 for none.
        below, above, left = (
            faces.pop((axis, z, y, x), np.full(size[axis], -1, dtype=np.int32)) for axis in range(3)
        )
        row = 0
        while row < depth * height:
            if used + width > len(table):
                table = _roomier(table, used + width)
            row, used = scan_block(
                block, words, np.array((z, y, x)), np.array(shape), limit, row, used, table,
                below, above, left,
            )  # fmt: skip
            if row < 0:
                raise SpecimenError(
                    f"{name}: labels below 0 or above {2**63 - 1}, expected 0 for the background "
                    "and positive whole numbers for nuclei"
                )
        faces[0, z + depth, y, x] = below
        faces[1, z, y + height, x] = above
        faces[2, z, y, x + width] = left
        voxels += block.size
        if used > CROWD and 8 * used > voxels:
            raise SpecimenError(
                f"{name}: nearly every voxel differs from its neighbours, like an intensity image; "
                "expected labels (one number per nucleus, 0 for the background)"
            )
    return gather_pieces(table[:used])


def unsigned(
    given: NDArray[np.integer],
) -> tuple[NDArray[np.unsignedinteger], NDArray[np.uint64], np.uint64]:
    """Return a block in one of four types, its memory as words, and the largest allowed label.

    Kernels are compiled once per type. The words of 64 bits cover all but the last few voxels.
    """
    native = np.require(given, given.dtype.newbyteorder("="), ["C", "W"])
    if native.ctypes.data % 8:
        native = native.copy()
    block = native.view(f"u{native.dtype.itemsize}")
    flat = block.reshape(-1)
    words = flat[: len(flat) - len(flat) % (8 // block.itemsize)].view(np.uint64)
    return block, words, np.uint64(min(np.iinfo(native.dtype).max, np.iinfo(np.int64).max))


def _roomier(table: Table, rows: int) -> Table:
    larger = np.zeros((2 * rows, table.shape[1]), dtype=table.dtype)
    larger[: len(table)] = table
    return larger


@inner
def find_root(table: Table, piece: int) -> int:
    """Return the piece that represents all pieces joined with ``piece``."""
    while table[piece, PARENT] != piece:
        table[piece, PARENT] = table[table[piece, PARENT], PARENT]
        piece = table[piece, PARENT]
    return piece


@inner
def join(table: Table, piece: int, other: int) -> int:
    """Join two pieces and return their root; ``piece`` is a root or -1."""
    root = find_root(table, other)
    if piece < 0:
        return root
    first = min(piece, root)
    table[max(piece, root), PARENT] = first
    return first


@inner
def add_run(sums: NDArray[np.int64], start: int, end: int, y: int, z: int) -> None:
    """Add the voxels start <= x < end of a row to the sums, in closed form."""
    count = end - start
    x = count * (start + end - 1) // 2
    sums[COUNT] += count
    sums[FIRST] += x
    sums[FIRST + 1] += count * y
    sums[FIRST + 2] += count * z
    last = end - 1
    before = start - 1
    sums[SECOND] += (
        last * (last + 1) * (2 * last + 1) - before * (before + 1) * (2 * before + 1)
    ) // 6
    sums[SECOND + 1] += count * y * y
    sums[SECOND + 2] += count * z * z
    sums[SECOND + 3] += x * y
    sums[SECOND + 4] += x * z
    sums[SECOND + 5] += count * y * z


@kernel
def scan_block(
    block: NDArray[np.unsignedinteger],
    words: NDArray[np.uint64],
    origin: NDArray[np.int64],
    shape: NDArray[np.int64],
    limit: np.uint64,
    row: int,
    used: int,
    table: Table,
    below: NDArray[np.int32],
    above: NDArray[np.int32],
    left: NDArray[np.int32],
) -> tuple[int, int]:
    """Add the rows of a block, from ``row`` on, to the pieces.

    Parameters
    ----------
    block
        (depth, height, width), unsigned.
    words
        the block's memory as words of 64 bits, without the last word if it is not full.
    origin, shape
        index of the first voxel, and shape of the whole volume; z, y, x.
    limit
        the largest allowed label.
    row, used
        rows of the block that are done, and rows of the table in use.
    table
        the pieces; changed.
    below, above, left
        (height, width), (depth, width), (depth, height): pieces (-1: none) before the block's
        first plane, row, column; on return those in its last plane, row, column.

    Returns
    -------
    tuple of int
        rows done (fewer than all if the table is full; -1 if a label is not allowed), and rows of
        the table in use.
    """
    depth, height, width = block.shape
    per_word = 8 // block.itemsize
    while row < depth * height:
        if used + width > len(table):
            return row, used
        z, y = row // height, row % height
        here_z, here_y = origin[0] + z, origin[1] + y
        edge = here_z in (0, shape[0] - 1) or here_y in (0, shape[1] - 1)
        line = block[z, y]
        start = 0
        while True:
            start = skip_background(line, start, words, row * width, per_word)
            if start == width:
                break
            label = line[start]
            if np.uint64(label) > limit:
                return -1, used
            value = np.int64(label)
            end = start + 1
            while end < width and line[end] == label:
                end += 1

            # The root of all pieces that this run touches, or a new piece. Within the block, the
            # label of the neighbour decides whether its piece counts; so nothing is written for the
            # background.
            piece, seen = -1, -1
            for x in range(start, end):
                if z == 0 or block[z - 1, y, x] == label:
                    touched = below[y, x]
                    if touched >= 0 and touched != seen and table[touched, LABEL] == value:
                        piece, seen = join(table, piece, touched), touched
            for x in range(start, end):
                if y == 0 or block[z, y - 1, x] == label:
                    touched = above[z, x]
                    if touched >= 0 and touched != seen and table[touched, LABEL] == value:
                        piece, seen = join(table, piece, touched), touched
            if start == 0 and left[z, y] >= 0 and table[left[z, y], LABEL] == value:
                piece = join(table, piece, left[z, y])
            if piece < 0:
                piece = used
                used += 1
                table[piece, PARENT] = piece
                table[piece, LABEL] = value
            below[y, start:end] = piece
            above[z, start:end] = piece
            from_x, to_x = origin[2] + start, origin[2] + end
            if edge or from_x == 0 or to_x == shape[2]:
                table[piece, BORDER] = 1
            add_run(table[piece], from_x, to_x, here_y, here_z)
            start = end
        left[z, y] = -1 if line[width - 1] == 0 else below[y, width - 1]
        row += 1
    clear_background(block[depth - 1], below)
    clear_background(block[:, height - 1], above)
    return row, used


@inner
def skip_background(
    line: NDArray[np.unsignedinteger],
    start: int,
    words: NDArray[np.uint64],
    offset: int,
    per_word: int,
) -> int:
    """Return the index of the first voxel from ``start`` on that is not 0, or the length.

    Most voxels are background, so they are examined four words at a time; the line begins at
    voxel ``offset`` of the block, which has ``per_word`` voxels per word.
    """
    width = len(line)
    while start < width and line[start] == 0 and (offset + start) % per_word != 0:
        start += 1
    if start < width and line[start] == 0:
        word = (offset + start) // per_word
        last = min((offset + width) // per_word, len(words))
        first = word
        while word + 4 <= last and (
            words[word] | words[word + 1] | words[word + 2] | words[word + 3]
        ) == np.uint64(0):
            word += 4
        start += (word - first) * per_word
    while start < width and line[start] == 0:
        start += 1
    return start


@inner
def clear_background(labels: NDArray[np.unsignedinteger], pieces: NDArray[np.int32]) -> None:
    """Set pieces to -1 where there is no label; the scan does not write there."""
    for row in range(labels.shape[0]):
        for column in range(labels.shape[1]):
            if labels[row, column] == 0:
                pieces[row, column] = -1


@kernel
def gather_pieces(table: Table) -> Table:
    """Return one row per connected piece, with the sums of all pieces joined into it."""
    roots = 0
    for piece in range(len(table)):
        root = find_root(table, piece)
        if root == piece:
            roots += 1
        else:
            table[root, COUNT:] += table[piece, COUNT:]
    gathered = np.empty((roots, WIDTH), dtype=np.int64)
    roots = 0
    for piece in range(len(table)):
        if table[piece, PARENT] == piece:
            gathered[roots] = table[piece]
            roots += 1
    return gathered
