"""WHAT is tested: configs, rubrics, agent logs, and the cases they expand to."""
