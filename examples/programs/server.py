"""Answers each request on a connection, a line with a number, with as many bytes."""

import socketserver
import sys


class Answer(socketserver.StreamRequestHandler):
    """One connection."""

    def handle(self) -> None:
        """Answer until the client closes the connection."""
        for line in self.rfile:
            self.wfile.write(bytes(int(line)))


class Server(socketserver.ThreadingTCPServer):
    """A thread for each connection."""

    allow_reuse_address = True
    daemon_threads = True


with Server(("", int(sys.argv[1])), Answer) as server:
    server.serve_forever()
