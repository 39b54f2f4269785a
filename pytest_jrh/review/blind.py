"""The state of blind labelling: the cases that were drawn, what each reviewer may see of them, and
what was said.

The engine's thread adds cases and verdicts, and waits for no label; the page's threads label, the
session's waits for the end. Which cases are labelled, by whom, and in which order is chance alone,
from a seed. Cases go by their digests, and chance by digests of these: a case that comes or goes
changes as little as possible of what is drawn, and the order in which cases were made changes
nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from pytest_jrh.cases.ids import generation_id
from pytest_jrh.cases.tests import KINDS
from pytest_jrh.core.errors import InputError, NoVerdictCase, Problem
from pytest_jrh.core.text import counted, name_problem, nearest
from pytest_jrh.review.blind_book import LabelBook
from pytest_jrh.review.board import PageState, ReviewCase, ReviewDesk, labels
from pytest_jrh.store.records import case_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from pytest_jrh.config.suite import ReviewSettings, Suite
    from pytest_jrh.core.model import Case, CaseSpec, Judgment
    from pytest_jrh.review.blind_book import Said
    from pytest_jrh.store.labels import PersonLabel


class Drawable(NamedTuple):
    """A case that may be drawn; its stratum is the rubric, and what its label rests on."""

    digest: str
    stratum: tuple[str, str]


def draw(cases: Iterable[Drawable], size: int, seed: int) -> frozenset[str]:
    """The digests of `size` cases, or of all where there are no more.

    Each case has the same chance, and each stratum its share of the sample, rounded up or down: the
    bounds between strata are where a random start and equal steps put them. So the sample stands
    for all cases without weights.
    """
    strata: dict[tuple[str, str], set[str]] = {}
    for case in cases:
        strata.setdefault(case.stratum, set()).add(case.digest)
    total = sum(map(len, strata.values()))
    if total <= size:
        return frozenset().union(*strata.values())
    start = int(_rank(seed, "start", ""), 16) % total
    drawn: list[str] = []
    reached = 0
    for stratum in sorted(strata):
        before = (reached * size + start) // total
        reached += len(strata[stratum])
        number = (reached * size + start) // total - before
        drawn += _ranked(strata[stratum], seed, "draw")[:number]
    return frozenset(drawn)


def shown_to_all(drawn: Collection[str], overlap: float, seed: int) -> frozenset[str]:
    """The part of a sample that every reviewer labels."""
    return frozenset(_ranked(drawn, seed, "overlap")[: round(overlap * len(drawn))])


def in_order(drawn: Collection[str], seed: int, reviewer: str) -> list[str]:
    """The sample in the order in which a reviewer sees it, which is his or her own."""
    return _ranked(drawn, seed, f"order {reviewer}")


def _ranked(digests: Iterable[str], seed: int, purpose: str) -> list[str]:
    return sorted(digests, key=lambda digest: _rank(seed, purpose, digest))


def _rank(seed: int, purpose: str, digest: str) -> str:
    text = f"{seed}\n{purpose}\n{digest}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


_LONGEST_NOTE = 2_000
_MOST_REVIEWERS = 100


@dataclass(frozen=True, slots=True)
class LabelProgress:
    """How far it is: of `total` cases `ended` were made, or came to nothing; then `sample` are
    drawn. `labelled` of these have the label of some reviewer, of whom there are `reviewers`.
    """

    total: int
    ended: int
    drawn: bool
    sample: int
    labelled: int
    reviewers: int
    finalized: bool

    @property
    def is_empty(self) -> bool:
        """Whether no case could be made, so that there is nothing to label."""
        return self.drawn and not self.sample

    def line(self, key: str) -> str:
        """What a terminal shows meanwhile; `key` ends it."""
        if not self.drawn:
            return f"jrh: {self.ended:,} of {self.total:,} cases made, to label a sample of them"
        who = counted(self.reviewers, "reviewer")
        labelled = f"{self.labelled:,} labelled by {who}" if self.labelled else "none labelled"
        return f"jrh: {counted(self.sample, 'case')} to label blind | {labelled} | {key} goes on"


@dataclass(frozen=True, slots=True)
class Assigned:
    """A case as a reviewer knows it: its key and number, which are about nothing but chance, and
    what he or she said. `busy`: another reviewer has it open.
    """

    key: str
    number: int
    entry: ReviewCase
    said: Said | None
    busy: bool

    @property
    def is_open(self) -> bool:
        """Whether it waits for a label of this reviewer."""
        return self.said is None or self.said.withdrawn


class LabelBoard(PageState):
    """The cases of a session on their way to people's labels; every method may be called from any
    thread.

    `settings` are those of each suite on the page; `digest` gives the digest of a case (rule J2).
    `reviewer` is the only one who labels, where the command line names one.
    """

    FINISH: ClassVar = "Finish"

    def __init__(
        self,
        settings: Mapping[str, ReviewSettings],
        book: LabelBook,
        *,
        digest: Callable[[Case], str],
        reviewer: str | None = None,
    ) -> None:
        super().__init__()
        self._settings = dict(settings)
        self._book = book
        self._digest = digest
        self.reviewer = reviewer
        # A digest of what a reviewer may not know would say it to whoever can compute it.
        self._secret = secrets.token_bytes(32)
        self._announced: set[str] = set()
        self._ended: set[str] = set()
        self._entries: dict[str, ReviewCase] = {}
        # Once they are drawn, by the keys that the page knows them by.
        self._drawn: dict[str, str] | None = None
        self._shared: frozenset[str] = frozenset()
        self._reviewers: dict[str, str] = {}
        self._open: dict[str, str] = {}
        self._given: set[tuple[str, str]] = set()
        self._revealed: set[tuple[str, str]] = set()

    @property
    def known_reviewers(self) -> tuple[str, ...]:
        """Who may label by the configs; empty where anybody may."""
        lists = [each.reviewers for each in self._settings.values()]
        return tuple(dict.fromkeys(name for names in lists for name in names)) if all(lists) else ()

    def announce(self, case_ids: Iterable[str]) -> None:
        """Say which cases there will be; nothing is drawn before all have ended."""
        with self._lock:
            self._announced.update(case_ids)
            self._version += 1
        self._tell()

    def end(self, case_id: str, case: Case | None = None) -> None:
        """Say that a case has come to its end: made, or rejected by the verifier, or nothing."""
        with self._lock:
            if case is not None:
                self._add(case)
            self._ended.add(case_id)
            self._version += 1
            if not self._drawn and self._announced <= self._ended:
                self._draw()
        self._tell()

    def add(self, case: Case) -> None:
        """Add a case of an earlier session, which nobody announces."""
        with self._lock:
            self._add(case)

    def set_verdict(self, case: Case, verdict: Judgment) -> None:
        """Keep what a judge decided, for the time when the case is revealed."""
        with self._lock:
            digest = self._digest(case)
            entry = self._entries.get(digest)
            if entry is not None:
                judged = {**entry.judged, case.spec.judge or "": verdict}
                self._entries[digest] = replace(entry, judged=judged)

    def finalize(self) -> None:
        """End the labelling; all labels are on the disk."""
        with self._lock:
            self._version += 1
        self._finalized.set()
        self._tell()

    def progress(self) -> LabelProgress:
        """How far it is."""
        with self._lock:
            who = [self._book.labelled_by(digest) for digest in (self._drawn or {}).values()]
            return LabelProgress(
                len(self._announced),
                len(self._ended & self._announced),
                self._drawn is not None,
                len(who),
                sum(map(bool, who)),
                len(frozenset[str]().union(*who)),
                self.finalized,
            )

    def changes(self) -> int:
        """The present version."""
        with self._lock:
            return self._version

    def enter(self, name: str) -> tuple[str, str]:
        """Let a reviewer in: the key that he or she goes by, and the name as it is kept.

        Raises `InputError` for a name that cannot be one, or that the config does not have.
        """
        name = name.strip()
        known = (self.reviewer,) if self.reviewer is not None else self.known_reviewers
        reason = name_problem(name)
        hint = None
        if reason is None and known and name not in known:
            reason = f"this suite is labelled by {', '.join(known)}"
            hint = nearest(name, known)
        if reason is not None:
            raise InputError(Problem(reason, hint=hint))
        with self._lock:
            for key, other in self._reviewers.items():
                if other == name:
                    return key, name
            if len(self._reviewers) >= _MOST_REVIEWERS:
                raise InputError(Problem(f"a session has at most {_MOST_REVIEWERS} reviewers"))
            key = secrets.token_hex(10)
            self._reviewers[key] = name
            return key, name

    def assigned(self, reviewer: str) -> list[Assigned]:
        """The cases of a reviewer, in his or her order: those that all label, those that he or she
        has labelled, and those that nobody else has.

        Raises `LookupError` for an unknown reviewer.
        """
        name = self._reviewers[reviewer]
        with self._lock:
            return [
                each
                for each in self._numbered(name)
                if each.said is not None
                or each.entry.digest in self._shared
                or not self._book.labelled_by(each.entry.digest)
            ]

    def open(self, reviewer: str, key: str) -> Assigned:
        """One case of a reviewer, who has it open from now on. Raises `LookupError`."""
        with self._lock:
            found = self._find(reviewer, key)
            name = self._reviewers[reviewer]
            was, self._open[name] = self._open.get(name), found.entry.digest
            changed = was != found.entry.digest
            self._version += changed
        if changed:
            self._tell()
        return found

    def give(self, reviewer: str, key: str, label: int | None, note: str = "") -> Assigned:
        """Label a case: blind, unless it was revealed to the reviewer before.

        On the disk first: raises `OSError` where that fails, and nothing has changed then.
        `LookupError` for a case that the reviewer does not have, `InputError` for a label that is
        not on its scale.
        """
        with self._lock:
            found = self._find(reviewer, key)
            name, entry = self._reviewers[reviewer], found.entry
            if label is not None and label not in labels(entry.case):
                offered = ", ".join(map(str, labels(entry.case)))
                raise InputError(Problem(f"got {label}; the labels are {offered}, or none"))
            if len(note) > _LONGEST_NOTE:
                raise InputError(Problem(f"a note has at most {_LONGEST_NOTE:,} characters"))
            place = (entry.digest, name)
            # What was labelled in an earlier session may have been revealed there.
            unseen = found.said is None or place in self._given
            blind = unseen and place not in self._revealed
            self._book.give(entry.case, entry.digest, name, label, note=note, blind=blind)
            self._given |= {place} if blind else set()
            self._version += 1
            after = self._find(reviewer, key)
        self._tell()
        return after

    def withdraw(self, reviewer: str, key: str) -> Assigned:
        """Take a label back; see `give` for errors. What was revealed stays revealed."""
        with self._lock:
            found = self._find(reviewer, key)
            name, entry = self._reviewers[reviewer], found.entry
            if not found.is_open:
                self._book.withdraw(entry.case, entry.digest, name)
                self._version += 1
            after = self._find(reviewer, key)
        self._tell()
        return after

    def reveal(self, reviewer: str, key: str) -> Assigned:
        """A case that the reviewer has labelled, with all that is known of it.

        From then on no label of it is blind. Raises `InputError` where it has no label yet.
        """
        with self._lock:
            found = self._find(reviewer, key)
            if found.is_open:
                raise InputError(Problem("label the case first"))
            self._revealed.add((found.entry.digest, self._reviewers[reviewer]))
            return found

    def _add(self, case: Case) -> None:
        digest = self._digest(case)
        if digest not in self._entries and case.spec.suite in self._settings:
            self._entries[digest] = ReviewCase(generation_id(case.spec), digest, case, 0, 0)

    def _draw(self) -> None:
        found: dict[str, list[Drawable]] = {}
        for digest, entry in self._entries.items():
            case = entry.case
            drawable = Drawable(digest, (case.rubric.id, _rests_on(case)))
            found.setdefault(case.spec.suite, []).append(drawable)
        self._drawn = {}
        for suite, cases in found.items():
            settings = self._settings[suite]
            drawn = draw(cases, settings.sample, settings.seed)
            self._shared |= shown_to_all(drawn, settings.overlap, settings.seed)
            self._drawn |= {self._key(digest): digest for digest in drawn}

    def _key(self, digest: str) -> str:
        return hmac.digest(self._secret, digest.encode(), "sha256").hex()[:20]

    def _numbered(self, name: str) -> Iterator[Assigned]:
        """The sample in a reviewer's order; what is his or hers of it is for the caller to say."""
        keys = {
            digest: key for key, digest in (self._drawn or {}).items() if self._may(name, digest)
        }
        seed = sum(settings.seed for settings in self._settings.values())
        opened = {digest for who, digest in self._open.items() if who != name} - self._shared
        for number, digest in enumerate(in_order(keys, seed, name), 1):
            said = self._book.said(digest, name)
            busy = digest in opened
            yield Assigned(keys[digest], number, self._entries[digest], said, busy)

    def _may(self, name: str, digest: str) -> bool:
        known = self._settings[self._entries[digest].case.spec.suite].reviewers
        return not known or name in known

    def _find(self, reviewer: str, key: str) -> Assigned:
        for each in self._numbered(self._reviewers[reviewer]):
            if each.key == key:
                return each
        raise LookupError(key)


def _rests_on(case: Case) -> str:
    """What a case's label rests on: the verifier's word, in either way, or that of people."""
    if KINDS[case.spec.test].natural:
        return "natural"
    if case.outcome.no_case is not None:
        return "rejected"
    return "confirmed" if case.verified else "unverified"


@dataclass
class BlindDesk(ReviewDesk):
    """The engine's side of blind labelling, for the suites `labelled`.

    Decisions of earlier reviews are obeyed as without a page, and what is labelled is what is
    judged.
    """

    labels: LabelBoard = field(kw_only=True)
    labelled: frozenset[str] = field(kw_only=True)

    def announce(self, specs: Iterable[CaseSpec]) -> None:
        self.labels.announce({generation_id(spec) for spec in specs if self._has(spec)})

    def miss(self, spec: CaseSpec, rejected: Case | None = None) -> None:
        if self._has(spec):
            self.labels.end(generation_id(spec), rejected)

    def awaits(self, case: Case) -> bool:
        if self._has(case.spec):
            _, decision = self.said(case)
            try:
                shown = case if decision is None else self.obeyed(case, decision)
            except NoVerdictCase:
                shown = None
            self.labels.end(generation_id(case.spec), shown)
        return False

    def judged(self, case: Case, verdict: Judgment) -> None:
        if self._has(case.spec):
            self.labels.set_verdict(case, verdict)

    def _has(self, spec: CaseSpec) -> bool:
        # A probe's case is another one changed: its label is that one's.
        return spec.suite in self.labelled and not KINDS[spec.test].derived


def open_labels(
    suites: Sequence[Suite],
    people: Iterable[PersonLabel],
    *,
    reviewer: str | None,
    redact: Callable[[str], str] = str,
) -> LabelBoard:
    """The board of these suites, with what `people` have said; `reviewer` is the only one who
    labels, None where the page asks.
    """
    folders = {(suite.name, test.name): test.output_dir for suite in suites for test in suite.tests}
    settings = {suite.name: suite.review for suite in suites}
    book = LabelBook(folders, people, redact=redact)
    return LabelBoard(settings, book, digest=case_digest, reviewer=reviewer)
