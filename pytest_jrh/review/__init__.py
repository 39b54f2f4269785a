"""The browser page: people look at made cases, decide about them, and change the agent templates
(rules K).
"""
