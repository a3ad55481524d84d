"""Servers of others on loopback."""

import socket
import subprocess
import sys
import time

# An S3 server that does as it is told: is away and comes back with all that it held, or refuses to take anything.
S3_SERVER = """
import sys, threading
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

whole, refuses = DomainDispatcherApplication(create_backend_app), False

def answer(environ, start):
    if refuses and environ["REQUEST_METHOD"] in ("PUT", "POST"):
        start("503 Slow Down", [("Content-Type", "application/xml")])
        return [b"<Error><Code>SlowDown</Code><Message>later</Message></Error>"]
    return whole(environ, start)

def begun():
    server = make_server("127.0.0.1", int(sys.argv[1]), answer, threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server

server = begun()
for order in map(str.strip, sys.stdin):
    if order == "away":
        server.shutdown()
        server.server_close()
    elif order == "back":
        server = begun()
    else:
        refuses = order == "refuse"
    print(order, flush=True)
"""


def started(program: str) -> tuple[str, "subprocess.Popen[str]"]:
    """A program that is told its port, and ends with its standard input: with whoever started it, at the latest."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-c", program, str(port)]
    server = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    for _ in range(300):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.1)
    return f"127.0.0.1:{port}", server


def order(server: "subprocess.Popen[str]", what: str) -> None:
    """Tell a server to do something, and wait until it has."""
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(f"{what}\n")
    server.stdin.flush()
    assert server.stdout.readline().strip() == what
