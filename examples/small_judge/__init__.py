"""The demo's cases, judged by a real model that is small enough to be recorded by anyone."""
