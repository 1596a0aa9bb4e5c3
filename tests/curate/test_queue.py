"""Questions: the most valuable first; answers in other specimens count."""

from pathlib import Path

import numpy as np
import pytest

from eutely.curate.cohort import Cohort
from eutely.curate.experience import SPREAD, Experience, doubts, expected_right, possible
from eutely.curate.placed import Placed
from eutely.curate.queue import LOOKED_AHEAD, consequences, questions
from eutely.results import Shown
from toy_reports import toy_cohort


@pytest.fixture(scope="module")
def cohort() -> Cohort:
    atlas, shown = toy_cohort(4, 40)
    number = {name: cell for cell, name in enumerate(atlas.names)}
    true = [np.array([number[name] for name in one.names], np.int32) for one in shown]
    nothing = np.full(40, np.nan)
    bare = [Shown(one.name, one.positions, cells, nothing, one.ids)
            for one, cells in zip(shown, true, strict=True)]  # fmt: skip
    return Cohort(atlas, bare)


@pytest.fixture
def worm(cohort: Cohort) -> Placed:
    return cohort.placed(cohort.shown[0].name)


def test_a_pinned_nucleus_is_certain_and_keeps_its_cell(worm: Placed) -> None:
    cells = worm.nuclei.cells
    other = {3: int(cells[9]), 9: int(cells[3])}
    again = worm.around(other)
    assert again.nuclei.cells[[3, 9]].tolist() == [cells[9], cells[3]]
    assert again.sure[[3, 9]].tolist() == [1.0, 1.0]
    assert doubts(again)[[3, 9]].tolist() == [0.0, 0.0]
    none = worm.around({5: -1})
    assert none.nuclei.cells[5] == -1
    assert none.sure[5] == 1.0
    assert worm.around({}) is worm


def test_questions_are_about_open_nuclei_the_most_valuable_first(worm: Placed) -> None:
    asked = questions(worm)
    values = [question.value for question in asked]
    assert values == sorted(values, reverse=True)
    assert len(asked) == len(worm.ids)
    looked = [question for question in asked if question.follow]
    assert 1 <= len(looked) <= LOOKED_AHEAD
    assert all(question.follow[0] == question.row for question in looked)
    assert all(
        question.value == question.doubt * min(len(question.follow), 2) for question in looked
    )
    first = asked[0].row
    settled = worm.around({first: int(worm.nuclei.cells[first])})
    assert first not in [question.row for question in questions(settled)]
    assert expected_right(settled) > expected_right(worm)


def test_a_swap_is_righted_by_one_answer(worm: Placed) -> None:
    """If a nucleus has the cell of its neighbour, the neighbour gets that of the nucleus."""
    shares = worm.nuclei.other_shares[:, 0]
    row = int(np.argmax(np.where(worm.nuclei.cells >= 0, shares, -1)))
    other = int(worm.nuclei.other_cells[row, 0])
    before = worm.nuclei.cells
    after = worm.around({row: other}).nuclei.cells
    [follow] = consequences(worm, {row: other}, known := {}).values()
    assert set(np.flatnonzero(before != after)) & set(follow)
    assert known[row].holds(other, before, worm.pins)
    assert not known[row].holds(other, after, worm.pins)
    assert after[row] == other
    assert after[before == other].tolist() != [other]


def answered(cohort: Cohort, cell: int, other: int) -> list[Placed]:
    """Return all specimens but the first, in which the nucleus shown as a cell is another one."""
    result = []
    for shown in cohort.shown[1:]:
        worm = cohort.placed(shown.name)
        row = int(np.flatnonzero(worm.nuclei.cells == cell)[0])
        result.append(worm.pinned({row: other}))
    return result


def test_answers_in_other_specimens_change_the_doubt(cohort: Cohort, worm: Placed) -> None:
    m = len(cohort.atlas)
    cell = int(worm.nuclei.cells[4])
    plain = doubts(worm)
    wrong, right = (answered(cohort, cell, other) for other in (-1, cell))
    suspicious, trusted = (doubts(worm, Experience.of(seen, m)) for seen in (wrong, right))
    assert suspicious[4] > 5 * plain[4]
    assert trusted[4] <= plain[4]
    rest = worm.nuclei.cells != cell
    np.testing.assert_allclose(suspicious[rest], plain[rest], rtol=1e-9)
    np.testing.assert_allclose(doubts(worm, Experience.of((), m)), plain)
    summed = Experience.of(wrong[:1], m).plus(Experience.of(wrong[1:], m))
    for values, same in zip(summed.shifts, Experience.of(wrong, m).shifts, strict=True):
        np.testing.assert_array_equal(values, same)


def test_the_shift_of_a_pair_is_the_likeliest_one(cohort: Cohort) -> None:
    """Newton's method against a fine grid; right answers count against the shift, wrong for it."""
    logits, was = np.array([-4.0, -3.0, -1.0, -2.0]), np.array([True, True, False, True])
    [shift] = Experience(9, np.full(4, 12), logits, was).shifts[1]
    grid = np.linspace(-10, 10, 20001)[:, None]
    chance = 1 / (1 + np.exp(-logits - grid))
    score = np.log(np.where(was, chance, 1 - chance)).sum(axis=1) - grid[:, 0] ** 2 / 2 / SPREAD**2
    assert shift == pytest.approx(grid[np.argmax(score), 0], abs=2e-3)
    more = Experience(9, np.full(5, 12), np.append(logits, -2.0), np.append(was, False)).shifts[1]
    assert more[0] < shift


def test_a_settled_cell_is_no_alternative_however_often_it_was_confused(
    cohort: Cohort, worm: Placed
) -> None:
    m, cells = len(cohort.atlas), worm.nuclei.cells
    a, b = int(cells[4]), int(cells[30])
    known = Experience.of(answered(cohort, a, b), m)
    assert doubts(worm, known)[4] > 0.2  # although the places say nothing of the kind
    settled = worm.around({30: b})
    assert b not in possible(settled).others
    assert doubts(settled, known)[4] == pytest.approx(doubts(settled)[4])


def test_pins_far_from_their_cells_show_that_a_specimen_lies_wrong(worm: Placed) -> None:
    cells = worm.nuclei.cells
    ends = np.argsort(worm.fit.warped[:, 0])
    far = {int(a): int(cells[b]) for a, b in zip(ends[:4], ends[::-1][:4], strict=True)}
    assert not worm.around({int(ends[0]): int(cells[ends[0]])}).lies_wrong
    assert worm.around(far).lies_wrong


def test_a_folder_of_nothing_is_refused(tmp_path: Path) -> None:
    from eutely.curate.folder import open_material
    from eutely.errors import ReadError

    with pytest.raises(ReadError, match="no finished run and no annotations"):
        open_material(tmp_path)
