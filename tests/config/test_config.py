"""Settings: presets, files and options become one Config, or one line that names the key."""

import math
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from eutely.cli import app
from eutely.config import PRESETS, Config, reference, resolve, to_toml
from eutely.config.model import Section
from eutely.config.resolve import keys
from eutely.errors import ConfigError, EutelyError, ReadError
from eutely.io.config import load_config

REFERENCE = Path(__file__).parents[2] / "docs" / "config.md"


def test_the_paper_preset_is_the_paper() -> None:
    paper = resolve(preset="paper")
    assert (paper.learn.specimens, paper.realign.iterations) == (15, 7)
    assert paper.learn.trials_linear == paper.learn.trials_sparsity == 500
    assert paper.learn.trials_offsets == 500
    assert (paper.learn.c0, paper.multi.c0, paper.atlas.c0) == (10000.0, 40.0, 10000.0)
    assert (paper.multi.synchronisation, paper.learn.loss) == ("dense", "sync")


def test_the_later_wins(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text('preset = "paper"\nseed = 3\n[learn]\nspecimens = 9\ntrials_linear = 8\n')
    config = load_config(file, overrides={"learn.specimens": 4, "learn.trials_offsets": None})
    assert config.seed == 3
    assert config.learn.specimens == 4, "an option beats the file"
    assert config.learn.trials_linear == 8, "the file beats the preset"
    assert config.learn.trials_offsets == 500, "an option that is not given changes nothing"
    assert load_config(file, preset="default").learn.trials_offsets != 500


def test_nothing_given_is_the_default_preset() -> None:
    assert load_config() == resolve() == Config() == resolve(preset="default")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sed = 1", "unknown key sed; did you mean seed?"),
        ("[learn]\ntrails_linear = 1", "did you mean learn.trials_linear?"),
        ("[lern]\nloss = 'sync'", "unknown key lern; did you mean learn?"),
        ("neighbours = 5", "unknown key neighbours; did you mean costs.neighbours?"),
        ("[costs]\nneighbors = 5", "did you mean costs.neighbours?"),
        ("[costs]\nqwxyz = 5", "'eutely config' prints all known keys"),
        ("seed = 'one'", "seed = 'one': expected a valid integer"),
        ("seed = 1.0", "seed = 1.0: expected a valid integer"),
        ("seed = true", "seed = True: expected a valid integer"),
        ("seed = -1", "seed = -1: expected greater than or equal to 0"),
        ("learn = 3", "learn = 3: expected a section [learn]"),
        (
            "[learn]\nloss = 'cyclic'",
            "learn.loss = 'cyclic': expected 'sync', 'sync-dense' or 'cycle'",
        ),
        ("[multi]\nc0 = nan", "multi.c0 = nan: expected a finite number"),
        ("preset = 'best'", "preset = 'best': expected one of default, paper"),
        ("preset = 3", "preset = 3: expected one of default, paper"),
        ("[estimate]\nprior = 1e-300", "estimate.prior = 1e-300: expected greater than or equal"),
        ("[estimate]\nprior = 0.01", "estimate.prior = 0.01: expected greater than or equal to 1"),
        ("[estimate]\nfreedom = 1e6", "expected less than or equal to 30"),
        ("[estimate]\nshrinkage = 0.01", "expected greater than or equal to 10"),
        ("[estimate]\nfreedom = 1e308", "estimate.freedom = 1e+308: expected less than or equal"),
        ("[estimate]\nshrinkage = 1e308", "expected less than or equal to 1000000"),
        ("[estimate]\nlength = 1e-300", "estimate.length = 1e-300"),
        ("[estimate]\nfade = 1e308", "estimate.fade = 1e+308"),
        ("[refine]\nfolds = 1000000000", "refine.folds = 1000000000: expected less"),
        ("seed = -1\n[multi]\nc0 = 'x'", "(and 1 more)"),
    ],
)
def test_a_bad_setting_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "a.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(file)
    assert message in str(caught.value)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"seed = ", b"seed 1", b"\xff\xfe", None])
def test_a_bad_file_is_one_line(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "a.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ReadError, match=r"a\.toml") as caught:
        load_config(file)
    assert "\n" not in str(caught.value)


def test_an_unknown_preset_or_override_is_an_error() -> None:
    with pytest.raises(ConfigError, match="expected one of default, paper"):
        resolve(preset="best")
    with pytest.raises(ConfigError, match=r"unknown key learn\.trial; did you mean learn\.trial"):
        resolve(overrides={"learn.trial": 4})


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ConfigError, match="stay as they are"):
        Config().seed = 4


@given(
    st.integers(0, 2**63 - 1),
    st.floats(0.001, 1e9),
    st.sampled_from(["sync", "cycle"]),
    st.sampled_from(sorted(PRESETS)),
)
def test_toml_holds_all_of_it(seed: int, c0: float, loss: str, preset: str) -> None:
    config = resolve({"seed": seed, "multi": {"c0": c0}, "learn": {"loss": loss}}, preset=preset)
    text = to_toml(config)
    assert resolve(tomllib.loads(text)) == config
    assert to_toml(resolve(tomllib.loads(text), preset="paper")) == text, "no key left out"
    assert max(map(len, text.splitlines())) <= 100


def test_every_setting_is_explained() -> None:
    sections = {name: getattr(Config(), name) for name in Config.model_fields}
    for name in keys():
        section, _, last = name.rpartition(".")
        if section or not isinstance(sections[last], Section):
            field = type(sections[section] if section else Config()).model_fields[last]
            assert (field.description or "").endswith("."), name


def test_a_part_is_ready_for_json() -> None:
    assert Config().value("seed") == 0
    assert Config().value("multi") == {"synchronisation": "dense", "c0": 40.0, "partners": 0}
    assert math.isfinite(Config().value("multi.c0"))


def test_the_reference_is_up_to_date() -> None:
    assert REFERENCE.read_text() == reference(), "eutely config --reference > docs/config.md"
    for key in keys():
        assert f"`{key.rpartition('.')[2]}`" in reference() or f"`[{key}]`" in reference()


def test_the_command_prints_what_it_reads(tmp_path: Path) -> None:
    run = CliRunner().invoke(app, ["config", "--preset", "paper"])
    assert run.exit_code == 0
    assert run.stdout == to_toml(resolve(preset="paper"))
    file = tmp_path / "a.toml"
    file.write_text("[learn]\nspecimens = 4\n")
    again = CliRunner().invoke(app, ["config", str(file)])
    assert "specimens = 4" in again.stdout
    assert CliRunner().invoke(app, ["config", "--reference"]).stdout == reference()


def test_the_command_fails_with_the_line(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text("sed = 4\n")
    run = CliRunner().invoke(app, ["config", str(file)])
    assert isinstance(run.exception, EutelyError)
    assert "did you mean seed" in str(run.exception)
