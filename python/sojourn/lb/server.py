"""os-ken in this process: accepts connections of switches, with TLS if it is configured.

os-ken's own listener accepts any number of connections, and its threads detect a lost switch only
when they send to it. This module corrects both.
"""

from __future__ import annotations

import logging
import socket
import ssl
import threading
from contextlib import suppress
from typing import Self

from os_ken import cfg
from os_ken.base.app_manager import AppManager
from os_ken.controller import controller, ofp_handler
from os_ken.controller.controller import Datapath

from sojourn.lab.errors import LabError
from sojourn.lb.application import TICK, LoadBalancer, Tick
from sojourn.lb.director import Director
from sojourn.lb.flows import FlowTable
from sojourn.lb.service import Service
from sojourn.lb.settings import Listen

LOG = logging.getLogger("sojourn.lb")

CONNECTIONS = 16
"""Largest number of simultaneous connections, including those before their handshake."""
HANDSHAKE_SECONDS = 5.0
ECHO_SECONDS, ECHOES = 2.0, 3
"""Interval between echo requests in seconds, and number of unanswered requests after which the
switch counts as lost.
"""


class _Switch(Datapath):
    """A connection of os-ken that ends when the switch closes it."""

    def _recv_loop(self) -> None:
        try:
            super()._recv_loop()
        finally:
            # The sending thread waits for a message; an empty last message ends it.
            queue = self.send_q
            if queue is not None:
                with suppress(Exception):
                    queue.put_nowait((b"", True))


def tls_context(listen: Listen) -> ssl.SSLContext | None:
    """Returns a TLS context that requires certificates of both sides; None without TLS."""
    if listen.tls is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_REQUIRED
    try:
        certificate, key, authority = listen.tls
        context.load_cert_chain(certificate, key)
        context.load_verify_locations(authority)
    except (OSError, ssl.SSLError) as error:
        raise LabError(f"{', '.join(map(str, listen.tls))}: {error}") from error
    return context


def listener(listen: Listen) -> socket.socket:
    """Returns a socket that listens at the service's address and port."""
    try:
        found = socket.getaddrinfo(
            listen.host, listen.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, where = found[0]
        made = socket.socket(family, kind, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(where)
        made.listen(CONNECTIONS)
    except OSError as error:
        raise LabError(f"{listen.host}, port {listen.port}: {error.strerror or error}") from error
    return made


class _Door:
    """Accepts connections of switches, in place of os-ken's `OpenFlowController`."""

    def __init__(self, listening: socket.socket, context: ssl.SSLContext | None) -> None:
        self.listening = listening
        self.context = context
        self.room = threading.BoundedSemaphore(CONNECTIONS)
        self.switches: set[_Switch] = set()

    def __call__(self) -> None:
        """Accepts connections until the listening socket is closed."""
        while True:
            try:
                connected, address = self.listening.accept()
            except OSError:
                return
            if not self.room.acquire(blocking=False):
                connected.close()
                continue
            threading.Thread(
                target=self._serve, args=(connected, address), name="switch", daemon=True
            ).start()

    def _serve(self, connected: socket.socket, address: tuple[str, int]) -> None:
        try:
            connected.settimeout(HANDSHAKE_SECONDS)
            if self.context is not None:
                connected = self.context.wrap_socket(connected, server_side=True)
            switch = _Switch(connected, address)
            self.switches.add(switch)
            try:
                switch.serve()
            finally:
                self.switches.discard(switch)
                switch.close()
        except Exception as error:  # noqa: BLE001 - one switch must not affect the others
            LOG.warning("a connection from %s ended: %s", address[0], error)
        finally:
            with suppress(OSError):
                connected.close()
            self.room.release()

    def close(self) -> None:
        """Closes the listening socket and all connections."""
        with suppress(OSError):
            self.listening.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits in accept()
        self.listening.close()
        for switch in list(self.switches):
            with suppress(OSError):
                switch.socket.shutdown(socket.SHUT_RDWR)


class Controller:
    """The balancer's application in os-ken, as a context manager; at most one in a process."""

    def __init__(self, service: Service, director: Director, flows: FlowTable) -> None:
        self.service = service
        self._door = _Door(listener(service.listen), tls_context(service.listen))
        self._over = threading.Event()
        self._given = {"service": service, "director": director, "flows": flows}
        self.application: LoadBalancer

    @property
    def port(self) -> int:
        """TCP port of the listening socket."""
        return int(self._door.listening.getsockname()[1])

    def __enter__(self) -> Self:
        cfg.CONF([], project="sojourn", default_config_files=[])
        cfg.CONF.set_override("echo_request_interval", ECHO_SECONDS)
        cfg.CONF.set_override("maximum_unreplied_echo_requests", ECHOES)
        ofp_handler.OpenFlowController = lambda: self._door
        controller.LOG.setLevel(logging.CRITICAL)
        manager = AppManager.get_instance()
        manager.load_apps(["sojourn.lb.application"])
        manager.instantiate_apps(**self._given)
        self._manager = manager
        self.application = manager.applications[LoadBalancer.__name__]
        threading.Thread(target=self._tick, name="clock", daemon=True).start()
        return self

    def _tick(self) -> None:
        while not self._over.wait(TICK):
            self.application.send_event(self.application.name, Tick())

    def __exit__(self, *_: object) -> None:
        """Stops the application and closes all connections; the switch keeps its rules."""
        self._over.set()
        self._door.close()
        for application in list(self._manager.applications.values()):
            application.stop()
