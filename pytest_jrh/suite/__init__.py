"""Suites: configs, rubrics, agent logs, and the cases they expand to."""
