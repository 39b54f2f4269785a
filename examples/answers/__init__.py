"""Answers of a support bot, with a judge prompt and a change of it that is worse."""
