"""Blind labelling below the page: which cases are drawn, for whom, and what is kept of labels."""

import json
from collections import Counter
from dataclasses import replace
from itertools import groupby, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_jrh.core import InputError
from pytest_jrh.core.cases import Verdict
from pytest_jrh.core.redact import Redactor
from pytest_jrh.core.transcript import message_text
from pytest_jrh.people import DecisionStore, Grounds
from pytest_jrh.people.board import LabelBoard, ReviewBoard, ReviewDesk, draw, in_order
from pytest_jrh.people.labels import labels_path, read_people
from pytest_jrh.review import Labelling
from pytest_jrh.review.serving import reply
from pytest_jrh.store.records import case_digest
from tests.support.blind import (
    COMMON,
    all_kinds,
    blind_suite,
    confirmed,
    labelling,
    natural,
    rejected,
    telling,
)


def digests_of(number: int, name: str = "") -> list[str]:
    return [f"{name}{index}" for index in range(number)]


def first_label(board: LabelBoard, name: str = "ann") -> tuple[str, str]:
    """Who labels, and the address of the first case."""
    reviewer, _ = board.enter(name)
    return reviewer, board.assigned(reviewer)[0].key


@given(st.integers(0, 80), st.integers(1, 60))
def test_so_many_are_drawn_whatever_the_order(number: int, size: int) -> None:
    digests = digests_of(number)
    drawn = draw(digests, size)
    assert len(drawn) == min(size, number)
    assert drawn == draw(digests[::-1], size)


def test_every_case_has_the_same_chance() -> None:
    samples = (draw(digests_of(80, f"{name} "), 20) for name in range(2_000))
    drawn = Counter(digest.split()[1] for sample in samples for digest in sample)
    # A standard deviation of a count is 19.
    assert all(abs(drawn[digest] - 500) < 100 for digest in digests_of(80))


def test_a_sample_goes_on_from_the_labelled_cases_when_others_come() -> None:
    earlier, new = digests_of(60), digests_of(150, "new ")
    labelled = draw(earlier, 30)
    both = [*earlier, *new]
    assert draw(earlier, 30, labelled) == labelled
    assert draw(both, 30, labelled) == labelled
    assert draw(both, 30) != labelled
    # The next are of those that a sample of the same share would have had: new ones alone.
    goes_on = draw(both, 60, labelled)
    assert labelled < goes_on
    assert len(goes_on) == 60
    assert goes_on - labelled <= {*new}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 6)), unique=True), st.text())
def test_rubrics_come_together_and_runs_apart(kinds: list[tuple[str, int]], reviewer: str) -> None:
    """Each run is there twice for a rubric, as it is and edited."""
    cases = {f"{rubric}{run}{twin}": (rubric, str(run)) for rubric, run in kinds for twin in "xy"}
    ordered = in_order(cases, reviewer, cases.__getitem__)
    assert sorted(ordered) == sorted(cases)
    rubrics = [rubric for rubric, _ in groupby(ordered, lambda digest: digest[0])]
    assert len(rubrics) == len(set(rubrics))
    for rubric, digests in groupby(ordered, lambda digest: digest[0]):
        runs = [cases[digest][1] for digest in digests]
        if len(set(runs)) > 1:
            assert all(one != other for one, other in pairwise(runs)), (rubric, runs)


def test_nothing_is_drawn_before_every_case_has_come_to_its_end(tmp_path: Path) -> None:
    suite = blind_suite(tmp_path, sample=4)
    assert labelling(suite, all_kinds(8)).progress().shown == 5
    board = labelling(suite, [])
    board.announce(["one", "two"])
    ann, _ = board.enter("ann")
    board.end("one", confirmed(0))
    assert (board.progress().shown, board.assigned(ann)) == (0, [])
    assert "1 of 2 cases made" in board.line()
    board.end("two")
    assert [one.entry.digest for one in board.assigned(ann)] == [case_digest(confirmed(0))]
    assert board.line() == "jrh: 0 of 1 case to label blind are done | press Finish to continue"


def test_the_order_says_nothing_of_what_a_case_was_made_for() -> None:
    violated, satisfied = digests_of(20, "violated "), digests_of(20, "satisfied ")
    places = []
    for number in range(300):
        ordered = in_order([*violated, *satisfied], f"ann {number}", lambda digest: ("", digest))
        places += [ordered.index(digest) for digest in violated]
    # A standard deviation of this mean is 0.11.
    assert abs(sum(places) / len(places) - 19.5) < 0.5


def labelled(board: LabelBoard, name: str, number: int) -> list[str]:
    """What a reviewer labels who takes the first cases without a label."""
    reviewer, _ = board.enter(name)
    done = []
    for _ in range(number):
        one = next(each for each in board.assigned(reviewer) if each.is_open)
        board.give(reviewer, one.key, one.entry.case.expected)
        done.append(one.entry.digest)
    return done


def open_for(board: LabelBoard, name: str) -> list[str]:
    reviewer, _ = board.enter(name)
    return [one.entry.digest for one in board.assigned(reviewer) if one.is_open]


def test_two_reviewers_share_the_overlap_and_divide_the_rest(tmp_path: Path) -> None:
    board = labelling(blind_suite(tmp_path, sample=15, overlap=0.3), all_kinds(40))
    ann = labelled(board, "ann", 12)
    ben = labelled(board, "ben", len(open_for(board, "ben")))
    ann += labelled(board, "ann", len(open_for(board, "ann")))
    assert len(set(ann) & set(ben)) == 6
    assert len(set(ann) | set(ben)) == board.progress().done == 20
    assert len(ann) + len(ben) == 26
    # Whoever comes when all is done still has what all label.
    assert len(open_for(board, "cleo")) == 6


def test_rejected_cases_are_drawn_beside_so_many_whose_labels_count(tmp_path: Path) -> None:
    cases = [confirmed(number) for number in range(30)]
    cases += [rejected(number) for number in range(30, 60)]
    board = labelling(blind_suite(tmp_path, sample=20), cases)
    ann, _ = board.enter("ann")
    drawn = [assigned.entry.rejected for assigned in board.assigned(ann)]
    assert (drawn.count(False), drawn.count(True)) == (20, 20)
    only = labelling(blind_suite(tmp_path, sample=7), cases[30:])
    assert only.progress().shown == 7


def test_labels_are_on_the_disk_for_reports_and_a_later_session_goes_on(tmp_path: Path) -> None:
    suite = blind_suite(tmp_path)
    cases = [confirmed(0), rejected(1), natural(2, 1)]
    board = labelling(suite, cases)
    ann, _ = board.enter("ann")
    for one in board.assigned(ann):
        board.give(ann, one.key, 1, note=" sure ")
    people = read_people(suite)
    assert Grounds(people=people).blind_votes == {case_digest(case): (1,) for case in cases}
    path = labels_path(tmp_path / "cases" / "labels")
    [line] = [json.loads(each) for each in path.read_text("utf-8").splitlines()]
    kept = {"reviewer": "ann", "label": 1, "blind": True, "note": "sure"}
    assert line.items() >= kept.items()
    # Git merges this file line by line, as those of two people.
    attributes = path.with_name(".gitattributes").read_text("utf-8")
    assert attributes == "labels.jsonl merge=union\n"
    again = labelling(suite, cases, people)
    assert open_for(again, "ann") == []
    assert len(open_for(again, "ben")) == 1


def test_only_a_label_before_finish_is_blind(tmp_path: Path) -> None:
    suite = blind_suite(tmp_path, overlap=1.0)
    cases = [confirmed(0), confirmed(1)]
    board = labelling(suite, cases)
    ann, _ = board.enter("ann")
    ben, _ = board.enter("ben")
    one, _ = board.assigned(ann)
    board.give(ann, one.key, 0)
    assert board.finish(ann) == ("ben",)
    label = board.give(ann, one.key, 1).label
    assert label is not None
    assert (label.blind, label.label) == (False, 1)
    labels = [(label.label, label.blind, label.withdrawn) for label in read_people(suite)]
    # The case without a label is noted as such, and the late label stands beside the blind one.
    assert labels == [(0, True, False), (None, False, True), (1, False, False)]
    # Another reviewer goes on as before.
    board.give(ben, board.assigned(ben)[0].key, 1)
    assert read_people(suite)[-1].blind
    # Nor is one in a later session, which follows a report, also of what had no label.
    later = labelling(suite, cases, read_people(suite))
    ann, _ = later.enter("ann")
    for assigned in later.assigned(ann):
        later.give(ann, assigned.key, 0)
        assert read_people(suite)[-1].blind is False


def test_a_label_that_is_taken_back_counts_nowhere_and_is_asked_for_again(tmp_path: Path) -> None:
    suite = blind_suite(tmp_path)
    board = labelling(suite, [natural(0)])
    ann, key = first_label(board)
    board.give(ann, key, 1)
    assert board.give(ann, key, None, withdrawn=True).is_open
    people = read_people(suite)
    assert [(each.label, each.withdrawn) for each in people] == [(None, True)]
    assert Grounds(people=people).blind_votes == {}
    board.give(ann, key, 0)
    # No report was made, so it is blind as before.
    assert Grounds(people=read_people(suite)).blind_votes == {case_digest(natural(0)): (0,)}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (" ", "must be a name"),
        ("a" * 61, "at most 60 characters"),
        ("\u202enna", "no control characters"),
        ("bob", "only ann can label here"),
    ],
)
def test_a_reviewer_has_a_name_that_can_be_one(tmp_path: Path, name: str, said: str) -> None:
    board = labelling(blind_suite(tmp_path), [])
    board.reviewer = "ann"
    with pytest.raises(InputError, match=said):
        board.enter(name)
    assert board.enter(" ann ")[1] == "ann"


def test_an_address_of_another_and_a_label_off_the_scale_are_refused(tmp_path: Path) -> None:
    board = labelling(blind_suite(tmp_path, sample=2, overlap=1.0), all_kinds(8))
    ann, first = first_label(board)
    ben, _ = board.enter("ben")
    # Two people cannot compare the addresses of their cases.
    of_ben = [(ann, case.key) for case in board.assigned(ben)]
    for reviewer, key in ((ann, "0" * 20), (ann, "é"), ("nobody", first), *of_ben):
        with pytest.raises(LookupError):
            board.give(reviewer, key, 1)
    with pytest.raises(InputError, match="2 is not a label of this case; must be one of 0, 1"):
        board.give(ann, first, 2)
    assert not list(tmp_path.rglob("labels.jsonl"))


def asked(board: LabelBoard, **names: str) -> dict[str, str]:
    """What every address that reads answers, by address; the page and its news included."""
    api = Labelling(board)
    found = {"/": api.shell()[0], "/events": json.dumps(api.news(0)[1])}
    for method, path, answer, _ in api.routes():
        if method == "GET":
            of_path = {name: value for name, value in names.items() if f"{{{name}}}" in path}
            found[path] = json.dumps(reply(answer, of_path)[1])
    return found


@pytest.mark.parametrize("labels_first", [False, True])
def test_nothing_that_is_sent_gives_an_answer_away(tmp_path: Path, *, labels_first: bool) -> None:
    cases = all_kinds(8)
    board = labelling(blind_suite(tmp_path), cases)
    ann, _ = board.enter("ann")
    assigned_cases = board.assigned(ann)
    hidden: list[str] = []
    for case in cases:
        hidden += telling(case)
    for assigned in assigned_cases:
        if labels_first:
            # Also what is labelled already tells nothing.
            board.give(ann, assigned.key, 1)
        case = assigned.entry.case
        kept = "".join(json.dumps(message) for message in case.messages)
        # What a transcript says may be what another case's edit took out.
        common = [text for text in COMMON if text not in kept]
        for address, body in asked(board, reviewer=ann, key=assigned.key).items():
            texts = hidden if address == "/" else [*hidden, *common]
            assert not [text for text in texts if text in body], address


def test_an_edited_turn_looks_like_any_other(tmp_path: Path) -> None:
    """The same bytes whether a text was edited or always there."""
    edited = confirmed(0)
    # The same transcript of an agent that had no thoughts in that turn.
    outcome = replace(edited.outcome, plan=None, edits=(), verification=None)
    run = replace(edited.run, messages=edited.messages)
    unedited = replace(edited, run=run, outcome=outcome)
    bodies = []
    for case in (edited, unedited):
        board = labelling(blind_suite(tmp_path), [case])
        ann, key = first_label(board)
        sent = asked(board, reviewer=ann, key=key)
        addresses = ("/reviewers/{reviewer}/cases/{key}", "/reviewers/{reviewer}/cases")
        bodies.append([sent[address].replace(key, "KEY") for address in addresses])
    assert bodies[0] == bodies[1]
    assert "Thought" not in bodies[0][0]


def test_decisions_of_a_review_are_obeyed_and_labels_are_of_what_is_judged(tmp_path: Path) -> None:
    suite = blind_suite(tmp_path)
    cases = [confirmed(0), confirmed(1), confirmed(2)]
    store = DecisionStore([suite])
    reviewed = ReviewBoard(store)
    for case in cases:
        reviewed.add(case)
    out, changed, _ = (one.entry for one in reviewed.changes()[1])
    reviewed.decide(out.key, out.digest, "rejected")
    reviewed.edit_turn(changed.key, changed.digest, 4, "A text of a person.")
    board = labelling(suite, [])
    on_page = frozenset({suite.name})
    desk = ReviewDesk(ReviewBoard(store), board, on_page, on_page)
    lost = [rejected(3), rejected(4)]
    desk.announce(case.spec for case in (*cases, *lost))
    probe = replace(cases[2], spec=replace(cases[2].spec, test="position", variant="x"))
    for case in (*cases, probe):
        assert not desk.awaits(case)
        desk.board.set_verdicts(case, (Verdict(1, "so"),))
    desk.end_without_case(lost[0].spec, lost[0])
    desk.end_without_case(lost[1].spec)
    ann, _ = board.enter("ann")
    shown = {one.entry.case.spec.run_id: one.entry for one in board.assigned(ann)}
    assert set(shown) == {"support-001", "support-002", "support-003"}
    assert message_text(shown["support-001"].case.messages[4]) == "A text of a person."
    # No verdict reaches who labels blind.
    assert not any(entry.judged for entry in shown.values())


def test_images_of_a_log_are_sent_as_such_and_nothing_else_is(tmp_path: Path) -> None:
    case = confirmed(0)
    urls = ["data:image/png;base64,iVBORw==", "https://example.org/a.png"]
    urls.append("data:image/svg+xml;base64,PHN2Zz4=")
    content = [{"type": "image", "image": url} for url in urls]
    messages = ({**case.messages[1], "content": content}, *case.messages[1:])
    run, outcome = replace(case.run, messages=messages), replace(case.outcome, messages=messages)
    board = labelling(blind_suite(tmp_path), [replace(case, run=run, outcome=outcome)])
    ann, key = first_label(board)
    sent = asked(board, reviewer=ann, key=key)
    parts = json.loads(sent["/reviewers/{reviewer}/cases/{key}"])["turns"][0]["parts"]
    assert [part["kind"] for part in parts] == ["image", "media", "media"]
    assert [part.get("address") for part in parts] == [urls[0], None, None]


@pytest.mark.parametrize("body", [b"\xff", b'{"label": NaN}', b'{"label": 2}', b'{"note": ""}'])
def test_a_label_that_is_none_changes_nothing(tmp_path: Path, body: bytes) -> None:
    board = labelling(blind_suite(tmp_path), [confirmed(0)])
    ann, key = first_label(board)
    routes = Labelling(board).routes()
    answer, model = next(route[2:] for route in routes if route[1].endswith("{key}/label"))
    assert reply(answer, {"reviewer": ann, "key": key}, model, body)[0] in (409, 422)
    assert board.assigned(ann)[0].is_open
    assert not list(tmp_path.rglob("labels.jsonl"))


def test_what_people_type_is_stored_as_text_without_secrets(tmp_path: Path) -> None:
    suite = blind_suite(tmp_path)
    board = labelling(suite, [confirmed(0)], redact=Redactor(("s3cret-value",)).text)
    note = 'a\u2028b "quoted"\n{"label": 1} \ud800 s3cret-value'
    board.give(*first_label(board, "../../etc/passwd"), 1, note)
    [said] = read_people(suite)
    assert said.reviewer == "../../etc/passwd"
    assert said.note.startswith('a\u2028b "quoted"\n{"label": 1}')
    [file] = tmp_path.rglob("*.jsonl")
    assert file == labels_path(suite.tests[0].output_dir)
    assert "s3cret" not in file.read_text("utf-8")


def test_no_label_is_lost_to_another_session_or_to_a_torn_line(tmp_path: Path) -> None:
    suite = blind_suite(tmp_path)
    cases = [confirmed(number) for number in range(2)]
    one, other = labelling(suite, cases), labelling(suite, cases)
    for name, board in (("ann", one), ("ben", other), ("cay", one)):
        board.give(*first_label(board, name), 1)
        # What a killed process left is no label, and does not swallow the next one.
        path = labels_path(tmp_path / "cases" / "agent_perturbation")
        path.write_bytes(path.read_bytes() + b'{"case_digest": "ab')
    assert [label.reviewer for label in read_people(suite)] == ["ann", "ben", "cay"]
