"""Raw stacks to label volumes with StarDist or Cellpose, ready for ``eutely build``.

    pip install stardist tensorflow     # or: pip install cellpose
    python segment.py raw/*.tif -o segmentations --voxel-size 0.12,0.12,0.12 --with stardist

Neither is a dependency of eutely. StarDist's pretrained 3D model is a demonstration: it is a start;
a model trained on a few of your own stacks is much better.
"""

import argparse
from pathlib import Path
from typing import Any

import tifffile

from eutely.io.volumes import write_volume


def with_stardist(image: Any, voxel_size: list[float]) -> Any:  # noqa: ARG001
    """Return labels (z, y, x) by StarDist; ``image`` has axes z, y, x."""
    from csbdeep.utils import normalize
    from stardist.models import StarDist3D

    model = StarDist3D.from_pretrained("3D_demo")
    labels, _ = model.predict_instances(normalize(image, 1, 99.8), n_tiles=(1, 4, 4))
    return labels


def with_cellpose(image: Any, voxel_size: list[float]) -> Any:
    """Return labels (z, y, x) by Cellpose; ``image`` has axes z, y, x."""
    from cellpose.models import CellposeModel

    anisotropy = voxel_size[2] / voxel_size[0]  # depth of a voxel by its width
    labels, *_ = CellposeModel(gpu=True).eval(image, do_3D=True, z_axis=0, anisotropy=anisotropy)
    return labels


METHODS = {"stardist": with_stardist, "cellpose": with_cellpose}


def main() -> None:
    """Segment each stack that was named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stacks", nargs="+", type=Path, help="raw images, axes z, y, x")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for the labels")
    parser.add_argument("--voxel-size", required=True, help="X,Y,Z in micrometres")
    parser.add_argument("--with", dest="method", choices=METHODS, default="stardist")
    given = parser.parse_args()
    x, y, z = map(float, given.voxel_size.split(","))
    for stack in given.stacks:
        labels = METHODS[given.method](tifffile.imread(stack), [x, y, z])
        write_volume(labels, given.output / f"{stack.name.split('.')[0]}.ome.tif", (x, y, z))
        print(f"{stack.name}: {len(set(labels.ravel().tolist())) - 1} nuclei")


if __name__ == "__main__":
    main()
