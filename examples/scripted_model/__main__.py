"""`python -m examples.scripted_model [--port 8797] [--delay 0.0]`: serve until interrupted."""

from __future__ import annotations

import argparse
import contextlib

from examples.scripted_model.server import ScriptedModel


def main() -> None:
    """Parse the command line and serve."""
    parser = argparse.ArgumentParser(prog="python -m examples.scripted_model", description=__doc__)
    parser.add_argument("--port", type=int, default=8797, help="loopback port (0: any free one)")
    parser.add_argument(
        "--delay", type=float, default=0.0, help="seconds to wait before each answer"
    )
    arguments = parser.parse_args()
    model = ScriptedModel(port=arguments.port, delay=arguments.delay)
    print(f"serving on {model.base_url}", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        model.serve_forever()


if __name__ == "__main__":
    main()
