"""Spools belong to their session: those of others are left alone, or removed a day after the last
case was put there."""

from __future__ import annotations

import os
import time
from pathlib import Path

from pytest_jrh.core.redact import Redactor
from pytest_jrh.store.made_cases import Handover
from tests.support.made_cases import make_case, make_spec, make_suite


def test_the_spools_of_other_sessions_are_left_alone_for_a_day(tmp_path: Path) -> None:
    suite = make_suite(tmp_path)
    own, live, killed = (Handover(letter * 16, Redactor()) for letter in "abc")
    for session in (own, live, killed):
        session.keep(make_case(make_spec()), suite)
        session.close()
    folders = [session.folder(suite) for session in (own, live, killed)]
    assert len({*folders}) == 3
    yesterday = time.time() - 25 * 60 * 60
    os.utime(folders[2], (yesterday, yesterday))
    own.clear([suite])
    assert [folder.exists() for folder in folders] == [False, True, False]
