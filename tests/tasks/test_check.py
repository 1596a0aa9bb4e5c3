from dataclasses import replace

import numpy as np
import pytest

import eutely
from eutely import Specimen
from eutely.tasks.check import (
    examine,
    odd_nuclei,
    odd_specimens,
    odd_units,
    odd_volume,
    summarised,
)


def worm(name="worm", seed=0, count=60, **further):
    """A long body, dense at the end of high x, without overlaps to speak of."""
    random = np.random.default_rng(seed)
    along = 300 * np.linspace(0, 1, count) ** 0.4
    points = np.stack([along, *(random.uniform(-1, 1, (2, count)) * [[30], [18]])], axis=1)
    return Specimen.from_arrays(name, points, **{"radii": np.full(count, 1.0), **further})


def kinds(oddities):
    return {odd.kind: odd for odd in oddities}


def test_facts():
    names = ["A", "A", "B"] + [""] * 57
    facts = examine(worm(names=names, unit="um"))
    assert (facts.nuclei, facts.named, facts.unit) == (60, 3, "um")
    points = worm().centroids
    assert facts.extent == tuple(points.max(axis=0) - points.min(axis=0))
    others = [np.sort(np.linalg.norm(points - point, axis=1))[1] for point in points]
    assert facts.neighbour == pytest.approx(np.median(others))
    assert facts.radius == pytest.approx(1)
    assert facts.head[0] > 0.95
    assert facts.head_margin > 1
    assert np.isnan(examine(worm(radii=None)).radius)


def test_the_head_turns_with_the_worm():
    turned = worm().moved(np.diag([-1.0, -1.0, 1.0]), [5, 6, 7])
    assert examine(turned).head[0] < -0.95
    assert examine(turned).spread == pytest.approx(examine(worm()).spread)


def test_nuclei_without_a_pose_are_an_oddity_not_an_error():
    line = Specimen.from_arrays("line", np.arange(30.0).reshape(10, 3))
    facts = examine(line)
    assert facts.head is None
    assert "one line" in kinds(odd_specimens([facts]))["no pose found"].detail


def test_a_good_specimen_has_no_oddities():
    assert not list(odd_nuclei(worm()))
    assert not list(odd_specimens([examine(worm(seed=seed)) for seed in range(4)]))


def test_odd_nuclei_are_named_by_their_ids():
    radii = np.ones(60)
    radii[[3, 4, 5, 6]] = [10, 0.1, 0, np.nan]
    points = worm().centroids.copy()
    points[20] = points[21]
    odd = kinds(
        odd_nuclei(
            Specimen.from_arrays(
                "worm",
                points,
                ids=np.arange(100, 160),
                radii=radii,
                names=["twin", "twin", "single"] + [""] * 57,
                features={
                    "voxels": np.where(np.arange(60) == 7, 1.0, 50.0),
                    "detached": np.where(np.arange(60) == 8, 2.0, 0.0),
                    "border": np.where(np.arange(60) == 9, 1.0, 0.0),
                },
            )
        )
    )
    assert {kind: oddity.ids for kind, oddity in odd.items()} == {
        "radius unknown or 0": (105, 106),
        "unusually large": (103,),
        "unusually small": (104,),
        "nuclei overlap": (120, 121),
        "duplicate names": (100, 101),
        "segments of one voxel": (107,),
        "segments with detached voxels": (108,),
        "cut off by the border of the volume": (109,),
    }
    assert odd["duplicate names"].detail == "2 of 60 nuclei share twin (id 100, 101)"


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        (lambda specimen: specimen.take(np.arange(40)), "count far from the cohort's", "40 nuclei"),
        (
            lambda specimen: Specimen.from_arrays(
                "odd", specimen.centroids * 1000, radii=np.ones(60)
            ),
            "size far from the cohort's",
            "about 1,000 times the cohort's: nanometres",
        ),
        (
            lambda specimen: Specimen.from_arrays(
                "odd", specimen.centroids[:, [2, 1, 0]], radii=np.ones(60)
            ),
            "axes look swapped",
            "z, y, x",
        ),
        (
            lambda specimen: Specimen.from_arrays(
                "odd", specimen.centroids * [1, 1, 3], radii=np.ones(60)
            ),
            "extent far from the cohort's",
            "along z 3.1 times",
        ),
        (
            lambda specimen: Specimen.from_arrays("odd", specimen.centroids),
            "no radius known",
            "others of the cohort",
        ),
    ],
)
def test_the_odd_one_of_a_cohort_is_found(change, kind, words):
    cohort = [worm(f"w{seed}", seed) for seed in range(8)]
    cohort[5] = change(worm("odd", 5))
    (odd,) = odd_specimens([examine(specimen) for specimen in cohort])
    assert (odd.specimen, odd.kind) == ("odd", kind)
    assert words in odd.detail


def test_extents_say_nothing_where_poses_differ():
    turns = np.linalg.qr(np.random.default_rng(0).normal(size=(8, 3, 3)))[0]
    cohort = [worm(f"w{k}", k).moved(turn, np.zeros(3)) for k, turn in enumerate(turns)]
    assert not list(odd_specimens([examine(specimen) for specimen in cohort]))


def test_many_specimens_share_a_line():
    cohort = [worm(f"w{k}", names=["a", "a"] + [""] * 58) for k in range(6)]
    odd = [oddity for specimen in cohort for oddity in odd_nuclei(specimen)]
    assert len(list(summarised(odd, 6, 6))) == 6
    (line,) = summarised(odd, 5, 6)
    assert line.startswith("duplicate names: 6 of 6 specimens, for example w0: 2 of 60")


def ellipsoids(lengths, count=40, seed=0, **further):
    """Nuclei of given half-extents along x, y, z, in slightly different directions."""
    random = np.random.default_rng(seed)
    order = np.argsort(-np.asarray(lengths))
    axes = np.repeat(np.eye(3)[order][None], count, axis=0)
    radii = np.asarray(lengths, float)[order] * random.uniform(0.9, 1.1, (count, 3))
    points = worm(count=count).centroids
    return Specimen.from_arrays("worm", points, radii=radii, axes=axes, **further)


@pytest.mark.parametrize(
    ("lengths", "voxel_size", "words"),
    [
        # round nuclei, 0.1 x 0.1 x 0.3 given as 0.3,0.1,0.1; and blurred along z as usual
        (
            (6, 2, 0.67),
            (0.3, 0.1, 0.1),
            "times as long in x as in z: are x and z swapped (--voxel-size 0.1,0.1,0.3)?",
        ),
        (
            (6, 2, 1.6),
            (0.3, 0.1, 0.1),
            "are x and z swapped (--voxel-size 0.1,0.1,0.3)?",
        ),
        ((6, 2, 2), (0.3, 0.1, 0.1), "3 times as long in x as in"),
        ((2, 6, 0.67), (0.1, 0.3, 0.1), "are y and z swapped"),
    ],
)
def test_a_voxel_size_in_the_wrong_order(lengths, voxel_size, words):
    (odd,) = odd_volume(examine(ellipsoids(lengths)), voxel_size)
    assert odd.kind == "voxel size in a wrong order"
    assert words in odd.detail


@pytest.mark.parametrize(
    ("lengths", "voxel_size"),
    [
        ((2, 2, 2), (0.1, 0.1, 0.3)),
        ((2, 2, 4.5), (0.1, 0.1, 0.3)),  # blurred along z
        ((3, 3, 1.2), (0.1, 0.1, 0.3)),  # flat
        ((5, 2, 2), (0.2, 0.2, 0.2)),  # long, and no other order
        ((3, 2, 2), None),
    ],
)
def test_nuclei_that_are_not_round_are_no_wrong_order(lengths, voxel_size):
    assert not list(odd_volume(examine(ellipsoids(lengths)), voxel_size))


def test_axes_of_a_table_look_swapped():
    (odd,) = odd_volume(examine(ellipsoids((6, 2, 2))))
    assert odd.kind == "axes look swapped"
    assert "3 times as long in x as in" in odd.detail


def test_voxels_apart_from_their_label_are_no_labels():
    def measured(detached):
        features = {"voxels": np.full(60, 50.0), "detached": np.full(60, detached)}
        return examine(worm(features=features))

    assert not list(odd_volume(measured(2.0)))
    (odd,) = odd_volume(measured(30.0))
    assert odd.kind == "labels do not look like nuclei"
    assert "60% of the labelled voxels" in odd.detail


def scaled(factor, name="odd", unit="unit"):
    return examine(Specimen.from_arrays(name, worm().centroids * factor, unit=unit))


@pytest.mark.parametrize(("factor", "words"), [(1000, "nanometres"), (0.001, "millimetres")])
def test_two_specimens_in_different_units(factor, words):
    odd = kinds(odd_specimens([scaled(1, "first"), scaled(factor)]))
    assert f"{factor:,} times that of first: {words} instead of micro" in (
        odd["size far from the cohort's"].detail
    )
    assert not list(odd_specimens([scaled(1, "first"), scaled(1.5)]))


@pytest.mark.parametrize("factor", [1e3, 1e-3])
def test_micrometres_that_cannot_be_micrometres(factor):
    assert not list(odd_units(scaled(1, unit="um")))
    (odd,) = odd_units(scaled(factor, unit="um"))
    assert odd.kind == "unit looks wrong"
    assert not list(odd_units(scaled(factor)))


def test_units_that_differ_from_the_atlas():
    cohort = [worm(f"w{seed}", unit="um", names=map(str, range(60))) for seed in range(3)]
    atlas = eutely.build(cohort, supervised=True, workers=1).atlas
    assert not list(odd_units(scaled(1, unit="um"), atlas))
    odd = kinds(odd_units(scaled(1000), atlas))["size far from the atlas's"]
    assert "about 1,000 times the atlas's: nanometres" in odd.detail
    odd = kinds(odd_units(scaled(1, unit="voxel"), atlas))["unit differs from the atlas's"]
    assert "in voxel, the atlas in um; give --voxel-size" in odd.detail
    odd = kinds(odd_units(scaled(1, unit="unit"), atlas))["unit differs from the atlas's"]
    assert odd.detail == "none stated: add a column unit, or --voxel-size"
    in_voxels = replace(atlas, unit="voxel")  # of any size
    assert not list(odd_units(scaled(9, unit="um"), in_voxels))
    assert not list(odd_units(scaled(9), in_voxels))
    assert kinds(odd_units(scaled(9, unit="voxel"), in_voxels))["size far from the atlas's"]


def test_python_says_what_the_commands_say(tmp_path, caplog):
    from typer.testing import CliRunner

    from eutely.cli import app
    from eutely.io.tables import write_table

    caplog.set_level("WARNING", "eutely")
    cohort = [worm(f"w{n}", n, unit="um", names=map(str, range(60))) for n in range(4)]
    cohort[3] = Specimen.from_arrays("w3", cohort[0].centroids, names=cohort[0].names, unit="um")
    atlas = eutely.build(cohort, supervised=True, workers=1).atlas
    assert any(line.startswith("w0: copies: w3 holds") for line in caplog.messages)
    caplog.clear()
    eutely.annotate(atlas, cohort, workers=1)  # it is said once
    assert not [line for line in caplog.messages if "copies" in line]
    small = Specimen.from_arrays("small", cohort[1].centroids / 1000, unit="um")
    write_table(small, tmp_path / "small.csv")
    atlas.save(tmp_path / "atlas.h5")
    eutely.annotate(atlas, tmp_path / "small.csv", workers=1)
    [line] = [line for line in caplog.messages if "unit looks wrong" in line]
    words = ["annotate", tmp_path / "atlas.h5", tmp_path / "small.csv", "-o", tmp_path / "out"]
    shown = CliRunner().invoke(app, [str(word) for word in words])
    assert " ".join(line.split()) in " ".join(shown.output.split())
