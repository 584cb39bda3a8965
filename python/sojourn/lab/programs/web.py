"""`web`: nginx at the servers, libcurl at the clients, and the engine's model of users.

In the model, a user requests an object by a number of bytes, and the server answers with a number
of packets. Here the request is padded to its length, and the header and body of the answer together
have the length of the packets. There is one difference. The model, as in ns-2, answers on a new
connection. HTTP answers on the connection of the request, so an object takes one round trip less.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib.util import find_spec

from sojourn.data import Object
from sojourn.lab.programs.balanced import Balanced
from sojourn.lab.programs.endpoint import INSIDE
from sojourn.lab.programs.plan import Run, address
from sojourn.lab.programs.program import Ended, Program, Ready
from sojourn.lab.programs.results import GroupStats, Page, WebObject, WebResult
from sojourn.lab.programs.stack import PACED, socket
from sojourn.lab.programs.summaries import summarize
from sojourn.lab.sandbox.modules import environment, python
from sojourn.lab.typed import of_json
from sojourn.plan.flows import Flow

LARGEST = 1 << 40
"""Size in bytes of the sparse file of zeros whose ranges are the objects."""
OBJECT = "/o"
"""Path of all objects in their URL."""
_HEADER = (
    "HTTP/1.1 206 Partial Content\r\n"
    "Server: nginx\r\n"
    "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
    "Content-Length: {length}\r\n"
    "Connection: close\r\n"
    "Content-Range: bytes 0-{last}/{largest}\r\n"
    "\r\n"
)
"""Header of nginx's answers with this module's configuration, to compute its length."""


def url(server: int, port: int) -> str:
    """Returns the URL of the objects of a server."""
    return f"http://{address(server)}:{port}{OBJECT}"


def header(length: int) -> int:
    """Returns the length of the header before a body of `length` bytes, in bytes."""
    return len(_HEADER.format(length=length, last=length - 1, largest=LARGEST))


def body(answer: int) -> int:
    """Returns the length of the body, at least 1, so that the answer has `answer` bytes."""
    length = max(1, min(answer, LARGEST) - header(max(1, answer)))
    # The header is shorter if the length of the body has fewer digits.
    while length + header(length) < answer:
        length += 1
    return length


def request_padding(target: str, bounds: str, request: int) -> list[str]:
    """Returns a header field that pads a request to `request` bytes; empty if it is long enough."""
    host, _, path = target.removeprefix("http://").partition("/")
    lines = [f"GET /{path} HTTP/1.0", f"Host: {host}", f"Range: bytes={bounds}", "X: ", ""]
    missing = request - sum(len(line) + 2 for line in lines)
    return [f"X: {'x' * missing}"] if missing > 0 else []


def configuration(listening: Iterable[tuple[str, int]]) -> str:
    """Returns the configuration of nginx for these addresses and ports.

    nginx serves one file, writes no log of requests, and uses only its working folder.
    """
    listen = "".join(f"    listen {host}:{port};\n" for host, port in sorted(listening))
    return f"""\
daemon off;
worker_processes 1;
pid nginx.pid;
error_log stderr warn;
events {{
  worker_connections 16384;
}}
http {{
  access_log off;
  server_tokens off;
  etag off;
  default_type "";
  sendfile on;
  tcp_nopush on;
  keepalive_timeout 0;
  client_header_buffer_size 128k;
  large_client_header_buffers 2 128k;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  open_file_cache max=2 inactive=1d;
  open_file_cache_valid 1d;
  server {{
{listen}    location = {OBJECT} {{
      alias /proc/self/fd/4;
      add_header Last-Modified "";
    }}
    location / {{
      return 404;
    }}
  }}
}}
"""


def available() -> bool:
    """Returns whether Python can import pycurl."""
    return find_spec("pycurl") is not None


def version() -> dict[str, str]:
    """Returns the version of libcurl by its name."""
    import pycurl

    return {"libcurl": str(pycurl.version_info()[1])}


def programs(
    path: str, run: Run, flows: Iterable[Flow], balanced: Balanced | None = None
) -> list[Program]:
    """Returns the Web servers and the browsers of these flows.

    With a balancer, all servers listen for every session, and browsers send to the virtual address.
    """
    served: dict[int, list[Flow]] = {}
    clients: dict[int, dict[str, Object]] = {}
    for flow in flows:
        for node in flow.servers if balanced is None else balanced.serving(flow):
            served.setdefault(node, []).append(flow)
        clients.setdefault(flow.receiver, {})[str(flow.flow)] = _options(flow)
    names = [node.name for node in run.plan.nodes]
    made = []
    for node, here in sorted(served.items()):
        host = address(node)
        sockets = [{"address": host, "port": flow.port, **_options(flow)} for flow in here]
        made.append(
            Program(
                name=f"nginx-{names[node]}",
                node=node,
                argv=python(f"{INSIDE}.nginx", path),
                ready=Ready.LISTENING,
                port=here[-1].port,
                inputs=(
                    configuration((host, flow.port) for flow in here).encode(),
                    LARGEST,
                    json.dumps(sockets).encode(),
                ),
                environment=environment(),
            )
        )
    made += [
        Program(
            name=browser_name(names[node]),
            node=node,
            argv=python(f"{INSIDE}.browser", str(run.seed), str(node)),
            ends=True,
            ready=Ready.SAYS_SO,
            inputs=(
                (run.plan if balanced is None else balanced.plan_of(node)).text.encode(),
                json.dumps(options).encode(),
            ),
            log=True,
            waits=True,
            environment=environment(),
        )
        for node, options in sorted(clients.items())
    ]
    return made


def browser_name(host: str) -> str:
    """Returns the name of the program that plays the users of a host."""
    return f"browser-{host}"


def _options(flow: Flow) -> Object:
    assert flow.tcp is not None
    options = socket(flow.tcp)
    return {
        "congestion": options.congestion,
        "mss": options.mss,
        "tos": flow.dscp << 2,
        "paced": PACED if options.paced else None,
    }


def collect(
    run: Run, flows: Iterable[Flow], ended: Iterable[Ended]
) -> tuple[dict[int, WebResult], dict[int, GroupStats], list[str]]:
    """Returns results by number of the flow, statistics by number of the group, and errors."""
    objects: dict[int, list[WebObject]] = {}
    pages: dict[int, list[Page]] = {}
    errors = []
    for one in ended:
        if one.status != 0 and one.log is not None:
            errors.append(f"{one.program.name}: {one.trouble}")
        if one.log is None:
            continue
        for number, line in enumerate(one.log.read_text("utf-8").splitlines(), 1):
            try:
                _take(json.loads(line), objects, pages)
            except (ValueError, KeyError, TypeError) as error:
                errors.append(f"{one.program.name}: line {number} of the log: {error!r}")
                break
    results = {
        flow.flow: _result(flow, objects.get(flow.flow, []), pages.get(flow.flow, []))
        for flow in flows
    }
    groups = {}
    for group in sorted({flow.group for flow in flows}):
        members = [results[flow.flow] for flow in flows if flow.group == group]
        groups[group] = GroupStats(
            delay=summarize([]),
            fct=summarize(
                o.ended - o.due
                for result in members
                for o in result.objects
                if o.error is None and o.ended is not None and o.ended >= run.warmup
            ),
            page=summarize(
                page.ended - page.started
                for result in members
                for page in result.pages
                if page.whole and page.ended >= run.warmup
            ),
            unfinished=sum(o.ended is None for result in members for o in result.objects),
        )
    return results, groups, errors


def _take(entry: Object, objects: dict[int, list[WebObject]], pages: dict[int, list[Page]]) -> None:
    flow = of_json(int, entry["flow"])
    if "object" not in entry:
        pages.setdefault(flow, []).append(of_json(Page, {**entry, "number": entry["page"]}))
        return
    more: Object = {
        "number": entry["object"],
        "connected": entry["connect"] or None,
        "first_byte": entry["first"] or None,
    }
    objects.setdefault(flow, []).append(of_json(WebObject, {**entry, **more}))


def _result(flow: Flow, objects: list[WebObject], pages: list[Page]) -> WebResult:
    failed = [o.error for o in objects if o.error is not None]
    error = f"{failed[0]} ({len(failed)} objects)" if failed else None
    return WebResult(
        flow.flow, flow.name, flow.number, error, objects=tuple(objects), pages=tuple(pages)
    )
