"""Stands for an interpreter that `fork_server.py` forks: passes on its streams and SIGINT, and ends
as that one ends.

Run as a file, without `site`, since its start is what every forked interpreter costs: `ADDRESS [-u]
-m MODULE ...`."""

import json
import os
import signal
import socket
import struct
import sys


def main() -> None:
    address, *arguments = sys.argv[1:]
    interruptible = signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
    asked = {
        "interruptible": interruptible,
        "arguments": arguments,
        "folder": os.getcwd(),  # noqa: PTH109 - pathlib takes longer to import than all this to run
        "environment": dict(os.environ),
    }
    body = json.dumps(asked).encode()
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(address)
        socket.send_fds(server, [struct.pack("!I", len(body))], [0, 1, 2])
        server.sendall(body)
        # Whoever reads from the other end is to see that the forked process closed its own.
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        leader = server.recv(4)
        if leader and interruptible:
            # Until now a SIGINT ends this process, and with it the one that is to be forked.
            (group,) = struct.unpack("!i", leader)
            signal.signal(signal.SIGINT, lambda *_: os.killpg(group, signal.SIGINT))
        status = server.recv(4)
    (code,) = struct.unpack("!i", status) if status else (1,)
    if code < 0:
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


main()
