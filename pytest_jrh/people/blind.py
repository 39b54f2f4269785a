"""Blind labelling: which cases are drawn, who has entered, what each reviewer may see, and the
labels that are given.

The engine's thread adds cases and verdicts, and waits for no label; the page's threads label, the
session's waits for the end. Chance alone decides what is drawn, from a seed and the digests of
cases: a case that comes or goes changes as little as possible, and the order in which cases were
made changes nothing.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import zip_longest

from pytest_jrh.config.schema import BlindSection
from pytest_jrh.core import frozen
from pytest_jrh.core.cases import Case
from pytest_jrh.core.errors import InputError
from pytest_jrh.core.ids import generation_id, short_digest
from pytest_jrh.core.runs import DEFAULT_SEED
from pytest_jrh.core.text import name_problem
from pytest_jrh.people.board import Board, ReviewCase, check_label
from pytest_jrh.people.labels import LabelBook, PersonLabel
from pytest_jrh.stats.intervals import grouped
from pytest_jrh.store.records import case_digest

_LATE = "without a label when the reviewer finished"


def draw(
    digests: Collection[str], size: int, seed: int, labelled: Collection[str] = ()
) -> frozenset[str]:
    """The digests of `size` cases, or of all where there are no more, each with the same chance, so
    that the sample stands for all cases without weights.

    Those are drawn first that are `labelled`: a sample goes on from them where cases were added,
    and those are next that any sample would have first.
    """
    ranked = _ranked(digests, seed, "draw")
    return frozenset(sorted(ranked, key=lambda digest: digest not in labelled)[:size])


def in_order(
    drawn: Collection[str], seed: int, reviewer: str, case_of: Callable[[str], tuple[str, str]]
) -> list[str]:
    """The sample in the order in which a reviewer sees it, which is his or her own.

    `case_of` gives the rubric and the run of a digest. Cases of a rubric come together, so that it
    is read once, and of them one of each run in turn: two of a run in a row, which would show what
    was edited, come only where no other run is left.
    """
    ranked = ((digest, *case_of(digest)) for digest in _ranked(drawn, seed, f"order {reviewer}"))
    ordered: list[str] = []
    for of_rubric in grouped((rubric, (run, digest)) for digest, rubric, run in ranked).values():
        for one_of_each_run in zip_longest(*grouped(of_rubric).values()):
            ordered += filter(None, one_of_each_run)
    return ordered


def _ranked(digests: Iterable[str], seed: int, purpose: str) -> list[str]:
    return sorted(digests, key=lambda digest: short_digest(f"{seed}\n{purpose}\n{digest}", 64))


@frozen
class Assigned:
    """A case as a reviewer knows it: its key and number, which are about nothing but chance, and
    the `label` that he or she gave.

    `is_blind`: a label that is given now is a blind one.
    """

    key: str
    number: int
    entry: ReviewCase
    label: PersonLabel | None
    is_blind: bool

    @property
    def is_open(self) -> bool:
        """Whether it waits for a label of this reviewer."""
        return self.label is None or self.label.withdrawn


class LabelBoard(Board):
    """The cases of some suites on their way to people's labels.

    `settings` are those of each suite, and `book` keeps the labels; `reviewer` is the only one who
    labels, where the command line names one. Reviewers and cases go by keys that are drawn at
    random, the same case by another one for each reviewer.

    Nothing is ever revealed here: who has finished reads the report, so that no label that he or
    she gives after `finish` is blind.
    """

    task = "label blind"

    def __init__(
        self,
        settings: Mapping[str, BlindSection],
        book: LabelBook,
        *,
        reviewer: str | None = None,
    ) -> None:
        super().__init__()
        self._settings = settings
        self._book = book
        self.reviewer = reviewer
        # A digest of what a reviewer may not know would say it to whoever can compute it.
        self._secret = secrets.token_bytes(32)
        self._entries: dict[str, ReviewCase] = {}
        self._drawn: frozenset[str] | None = None
        self._orders: dict[str, list[str]] = {}
        self._shared: frozenset[str] = frozenset()
        self._reviewers: dict[str, str] = {}
        # Digests with the name of a reviewer who labelled them blind in this session.
        self._given: set[tuple[str, str]] = set()
        self._finished: set[str] = set()

    def end(self, case_id: str, case: Case | None = None) -> None:
        with self._lock:
            super().end(case_id, case)
            if not self._drawn and self._announced <= self._ended:
                self._draw()
                self.version += 1

    def add(self, case: Case) -> None:
        with self._lock:
            digest = case_digest(case)
            if digest not in self._entries and case.spec.suite in self._settings:
                self._entries[digest] = ReviewCase(generation_id(case.spec), digest, case)

    def _shown_and_done(self) -> tuple[int, int]:
        sample = self._drawn or ()
        return len(sample), sum(bool(self._book.labelled_by(digest)) for digest in sample)

    def enter(self, name: str) -> tuple[str, str]:
        """Let a reviewer in: the key that he or she goes by, and the name as it is kept.

        Raises `InputError` for a name that cannot be one, or that the command line does not have.
        """
        name = name.strip()
        reason = name_problem(name)
        if reason is None and self.reviewer not in (None, name):
            reason = f"this session is labelled by {self.reviewer}"
        if reason is not None:
            raise InputError(reason)
        with self._lock:
            keys = [key for key, entered in self._reviewers.items() if entered == name]
            if not keys:
                keys.append(secrets.token_hex(10))
                self._reviewers[keys[0]] = name
            return keys[0], name

    def finish(self, reviewer: str) -> tuple[str, ...]:
        """End it for a reviewer, and where nobody else labels, for the session; gives those who do.
        No later label of his or hers is blind, in this session or a later one.

        Raises `LookupError` for an unknown reviewer, and `OSError` where what has no label yet
        cannot be noted; then nothing has ended.
        """
        with self._lock:
            name = self._reviewers[reviewer]
            for assigned in self._numbered(name):
                if assigned.label is None:
                    digest, case = assigned.entry.digest, assigned.entry.case
                    late = PersonLabel(digest, name, None, note=_LATE, withdrawn=True)
                    self._book.keep(case, late)
            self._finished.add(name)
            self.version += 1
            others = sorted(set(self._reviewers.values()) - self._finished)
        if not others:
            self.finalize()
        return tuple(others)

    def assigned(self, reviewer: str) -> list[Assigned]:
        """The cases of a reviewer, in his or her order: those that all label, those that he or she
        has labelled, and those that nobody else has.

        Raises `LookupError` for an unknown reviewer.
        """
        with self._lock:
            cases = []
            for assigned in self._numbered(self._reviewers[reviewer]):
                digest = assigned.entry.digest
                is_anyones = digest in self._shared or not self._book.labelled_by(digest)
                if is_anyones or not assigned.is_open:
                    cases.append(assigned)
            return cases

    def open(self, reviewer: str, key: str) -> Assigned:
        """One case of a reviewer. Raises `LookupError`."""
        with self._lock:
            return self._find(reviewer, key)[0]

    def give(self, reviewer: str, key: str, label: int | None, note: str = "") -> Assigned:
        """Label a case: blind, unless the reviewer may have read a report of it.

        On the disk first: raises `OSError` where that fails, and nothing has changed then.
        `LookupError` for a case that the reviewer does not have, `InputError` for a label that is
        not on its scale.
        """
        with self._lock:
            assigned, name = self._find(reviewer, key)
            if label is not None:
                check_label(assigned.entry.case, label)
            digest = assigned.entry.digest
            self._book.keep(
                assigned.entry.case,
                PersonLabel(digest, name, label, blind=assigned.is_blind, note=note),
            )
            if assigned.is_blind:
                self._given.add((digest, name))
            self.version += 1
            return self._find(reviewer, key)[0]

    def withdraw(self, reviewer: str, key: str) -> Assigned:
        """Take a label back; see `give` for errors."""
        with self._lock:
            assigned, name = self._find(reviewer, key)
            if not assigned.is_open:
                withdrawn = PersonLabel(assigned.entry.digest, name, None, withdrawn=True)
                self._book.keep(assigned.entry.case, withdrawn)
                self.version += 1
            return self._find(reviewer, key)[0]

    def _draw(self) -> None:
        """Draw of each suite a sample of the cases that are judged, as no other label counts for a
        judge's figures, and of the rejected ones the same share.
        """
        by_suite: dict[str, dict[str, Case]] = {}
        for digest, entry in self._entries.items():
            by_suite.setdefault(entry.case.spec.suite, {})[digest] = entry.case
        drawn_digests: set[str] = set()
        for suite, cases in by_suite.items():
            settings = self._settings[suite]
            size, seed = settings.sample, DEFAULT_SEED
            labelled = frozenset(filter(self._book.has_blind, cases))
            rejected = {digest for digest in cases if cases[digest].outcome.no_case is not None}
            judged = cases.keys() - rejected
            beside = round(len(rejected) * min(1.0, size / len(judged))) if judged else size
            drawn = draw(judged, size, seed, labelled) | draw(rejected, beside, seed, labelled)
            shared = round(settings.overlap * len(drawn))
            self._shared |= frozenset(_ranked(drawn, seed, "overlap")[:shared])
            drawn_digests |= drawn
        self._drawn = frozenset(drawn_digests)

    def _key(self, name: str, digest: str) -> str:
        """The name of a case in a reviewer's addresses, so that two people cannot compare them."""
        return hmac.digest(self._secret, f"{digest} {name}".encode(), "sha256").hex()[:20]

    def _numbered(self, name: str) -> Iterator[Assigned]:
        """The sample in a reviewer's order; what is his or hers of it is for the caller to say."""
        if self._drawn is not None and name not in self._orders:
            seed = DEFAULT_SEED * len(self._settings)
            self._orders[name] = in_order(self._drawn, seed, name, self._rubric_and_run)
        has_finished = name in self._finished
        for number, digest in enumerate(self._orders.get(name, ()), 1):
            label = self._book.of(digest, name)
            # What was labelled in an earlier session is in a report of it.
            is_unseen = label is None or (digest, name) in self._given
            yield Assigned(
                key=self._key(name, digest),
                number=number,
                entry=self._entries[digest],
                label=label,
                is_blind=is_unseen and not has_finished,
            )

    def _rubric_and_run(self, digest: str) -> tuple[str, str]:
        spec = self._entries[digest].case.spec
        return f"{spec.suite} {spec.rubric_id}", f"{spec.run_id} {spec.epoch}"

    def _find(self, reviewer: str, key: str) -> tuple[Assigned, str]:
        """A case of a reviewer, and the reviewer's name; raises `LookupError`."""
        name = self._reviewers[reviewer]
        for assigned in self._numbered(name):
            if assigned.key == key:
                return assigned, name
        raise LookupError(key)
