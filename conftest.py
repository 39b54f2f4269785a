"""Makes pytest's own `pytester` fixture available to the tests of the plugin."""

pytest_plugins = ["pytester"]
