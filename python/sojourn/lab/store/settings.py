"""Settings of the measurement of a running store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from sojourn.settings import Option, SettingError, settings


@settings
class Running:
    """Addresses of a running store, credentials, and the limit of the request rate."""

    contact_points: Annotated[str, Option("A,B")]
    """Addresses of running nodes, separated by commas."""
    port: Annotated[int, Option(min=1, max=65_535)] = 9042
    """Port on which the nodes answer clients."""
    user: str | None = None
    """User name at the store; the password is in $SOJOURN_STORE_PASSWORD or --password-file."""
    password_file: Annotated[Path | None, Option("FILE", existing=True)] = None
    """File that contains the password."""
    authority: Annotated[Path | None, Option("FILE", flag="--tls", existing=True)] = None
    """Use TLS; FILE is the certificate of the authority that signs the nodes' certificates."""
    certificate: Annotated[Path | None, Option("FILE", flag="--tls-certificate", existing=True)] = (
        None
    )
    """File with a client certificate and its key, if the nodes require one."""
    rate: Annotated[float, Option(min=0.01, max=100_000)] = 100.0
    """Largest number of requests per second."""

    def __post_init__(self) -> None:
        if not self.points:
            raise SettingError("contact_points", "must name at least one node, such as 127.0.0.1")
        if self.certificate is not None and self.authority is None:
            why = "requires --tls with the certificate of the signing authority"
            raise SettingError("certificate", why)

    @property
    def points(self) -> list[str]:
        """Returns the addresses of running nodes."""
        return [point.strip() for point in self.contact_points.split(",") if point.strip()]
