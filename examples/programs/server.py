"""Answers requests over TCP. A request is a line with a number, the answer is this many bytes."""

import socketserver
import sys


class Answer(socketserver.StreamRequestHandler):
    """The answers on one connection."""

    def handle(self) -> None:
        """Answer until the client closes the connection."""
        for line in self.rfile:
            self.wfile.write(bytes(int(line)))


class Server(socketserver.ThreadingTCPServer):
    """A server with one thread per connection."""

    allow_reuse_address = True
    daemon_threads = True


with Server(("", int(sys.argv[1])), Answer) as server:
    server.serve_forever()
