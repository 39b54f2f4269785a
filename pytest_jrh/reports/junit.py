"""The decision as a test in JUnit's XML, for a merge of shards and `check`, which are no tests.

In a session pytest's own `--junitxml` has it, beside the cases.
"""

from __future__ import annotations

from xml.etree import ElementTree

from pytest_jrh.core.text import log_line
from pytest_jrh.reports.report import Report
from pytest_jrh.reports.session import Session


class JunitReport(Report):
    """One test for each suite that is decided about, which fails where the exit code is 1."""

    suffix = ".xml"

    def text(self, session: Session) -> str:
        failed = sum(not decision.passed for decision in session.decisions.values())
        root = ElementTree.Element("testsuites")
        tests = ElementTree.SubElement(root, "testsuite", name="pytest-jrh")
        tests.attrib |= {"tests": str(len(session.decisions)), "failures": str(failed)}
        for suite, decision in session.decisions.items():
            test = ElementTree.SubElement(tests, "testcase", classname=suite, name="decision")
            sentences = [log_line(session.redactor.text(one)) for one in decision.sentences]
            if not decision.passed:
                failure = ElementTree.SubElement(test, "failure", message=sentences[0])
                failure.text = "\n".join(sentences)
        return ElementTree.tostring(root, encoding="unicode") + "\n"
