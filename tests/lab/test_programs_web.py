"""Web sessions: nginx and libcurl between two hosts, users by the engine's model."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from sojourn import _core
from sojourn.lab.programs import Execution, WebResult, installed, prepare, web
from sojourn.lab.programs.program import Ended
from tests.lab.plans import SECOND, flow, plan
from tests.lab.test_programs import Pair, played

WEB = "web pages 3 interpage exp(100ms) interobject exp(10ms) objects exp(3) size pareto2(12,1.2)"

pytestmark = [pytest.mark.needs("nginx"), pytest.mark.alone]


def test_answers_have_their_length() -> None:
    for answer in (1, 200, 1000, 1176, 1177, 1178, 1460, 9999, 10_200, 100_181, 1 << 30):
        length = web.body(answer)
        whole = length + web.header(length)
        # Only an answer shorter than a header is longer than it should be; where a body's length
        # gains a digit, one or two bytes may be missing.
        assert whole - 2 <= answer <= whole or length == 1, answer
    assert web.body(1) == web.body(150) == 1
    padding = web.request_padding("http://10.0.0.1:20000/o", "0-1279", 1460)
    request = "\r\n".join(
        ["GET /o HTTP/1.0", "Host: 10.0.0.1:20000", "Range: bytes=0-1279", *padding, "", ""]
    )
    assert len(request) == 1460
    assert web.request_padding("http://10.0.0.1:20000/o", "0-1279", 60) == []


def test_users_ask_as_in_the_simulator(pair: Pair, tmp_path: Path) -> None:
    wanted = plan(flow(WEB, name="web", count=4, tcp="reno mss 1000", dscp=10), duration="3s")
    setup = prepare(wanted, 2)
    assert [program.name for program in setup.programs] == ["nginx-a", "browser-b"]
    found = played(setup, pair, tmp_path)
    assert found.errors == ()
    sessions = {session.flow: session for session in _core.web_sessions(wanted.text, 2, 1)}
    assert len(sessions) == 4
    for result in found.flows:
        assert isinstance(result, WebResult)
        assert len(result.objects) > 10
        assert len(result.pages) > 2
        # Requests do not depend on the times of responses: without delay they are the same.
        session = sessions[result.flow]
        expected: list[tuple[tuple[int, int], int]] = []
        at = session.next_event()
        while at is not None and len(expected) < len(result.objects) + 50:
            while (asked := session.poll(at)) is not None:
                expected.append(((asked[1], asked[2]), asked[5]))
                session.complete(at, asked[1], asked[2])
            at = session.next_event()
        sizes = dict(expected)
        for one in result.objects:
            assert one.asked == sizes[one.page, one.number]
            assert one.server == 0
            if one.ended is None:
                assert one.bytes < one.asked
                continue
            assert one.bytes == one.asked
            assert one.due <= one.started <= one.ended
            assert one.connected is not None
            assert one.first_byte is not None
            assert one.connected <= one.first_byte <= one.ended - one.started + 1_000_000
        for page in result.pages:
            mine = [one for one in result.objects if one.page == page.number]
            assert len(mine) == page.objects
            assert page.started == min(one.due for one in mine)
            assert page.ended >= max(one.ended or 0 for one in mine)
    group = found.groups[0]
    assert (
        0
        < group.fct.stats.count
        <= sum(len(result.objects) for result in found.flows if isinstance(result, WebResult))
    )
    assert group.page.stats.mean is not None
    assert group.page.stats.mean > 0


@pytest.mark.needs("ss")
def test_servers_have_the_tcp_settings_of_their_flows(pair: Pair, tmp_path: Path) -> None:
    # Objects that never come whole, so that there is something to look at.
    endless = "web objects 1 size 100000000"
    wanted = plan(
        flow(endless, name="one", tcp="reno mss 1000"),
        flow(endless, name="two", tcp="cubic", dscp=10),
        duration="20s",
    )
    said: list[str] = []

    def look(now: int) -> bool:
        if now > 0:
            ss = pair[0].spawn(["ss", "-tinO", "state", "established"])
            assert ss.wait(30) == 0
            said[:] = ss.output().decode().splitlines()
        return sum(":20000" in line or ":20001" in line for line in said) < 2

    with Execution(prepare(wanted, 1), dict(enumerate(pair)), tmp_path) as execution:
        execution.configure()
        execution.ready()
        assert not execution.play(look, every=0.1)
        execution.collect()
    (one,) = (line for line in said if ":20000" in line)
    (two,) = (line for line in said if ":20001" in line)
    assert " reno " in one
    assert " mss:988 " in one
    assert " cubic " in two
    assert " mss:1448 " in two


def test_a_server_that_is_not_there(pair: Pair, tmp_path: Path) -> None:
    wanted = plan(flow(WEB, name="web"), duration="1s")
    setup = prepare(wanted, 1)
    (browser,) = (program for program in setup.programs if program.log)
    found = played(dataclasses.replace(setup, programs=(browser,)), pair, tmp_path)
    (result,) = found.flows
    assert isinstance(result, WebResult)
    assert result.error is not None
    assert "onnect" in result.error
    # The user goes on, but his pages are no pages.
    assert len({one.page for one in result.objects}) > 1
    assert not any(page.whole for page in result.pages)
    assert found.groups[0].fct.stats.count == found.groups[0].page.stats.count == 0
    assert found.errors == (f"web.0: {result.error}",)


def test_a_malformed_log_is_an_error_with_its_line(tmp_path: Path) -> None:
    setup = prepare(plan(flow(WEB, name="web"), duration="1s"), 1)
    (browser,) = (program for program in setup.programs if program.log)
    log = tmp_path / "log"
    page = {"flow": 0, "page": 0, "started": 1, "ended": 2, "objects": 1, "whole": True}
    for line, error in (("{}", "KeyError('flow')"), ("[]", "TypeError"), ("x", "JSONDecodeError")):
        log.write_text(json.dumps(page) + "\n" + line + "\n", encoding="utf-8")
        ended = Ended(browser, 0, log=log)
        results, _, errors = web.collect(setup.run, setup.run.flows, [ended])
        assert len(results[0].pages) == 1
        assert len(errors) == 1
        assert errors[0].startswith("browser-b: line 2 of the log: ")
        assert error in errors[0]


def test_sessions_know_what_was_asked_for() -> None:
    wanted = plan(flow(WEB, name="web", start="100ms", stop="500ms"))
    (session,) = _core.web_sessions(wanted.text, 1, 1)
    assert (session.flow, session.port, session.servers) == (0, 20_000, [0])
    assert session.stop == SECOND // 2
    assert session.next_event() == SECOND // 10
    assert session.poll(SECOND // 10 - 1) is None
    asked = session.poll(SECOND // 10)
    assert asked is not None
    due, page, number, server, request, answer = asked
    assert (due, page, number, server, request) == (SECOND // 10, 0, 0, 0, 1460)
    assert answer % 1460 == 0
    with pytest.raises(ValueError, match="object was not requested"):
        session.complete(SECOND // 5, 0, 7)
    session.complete(SECOND // 5, page, number)
    with pytest.raises(ValueError, match="object was not requested"):
        session.complete(SECOND // 5, page, number)
    assert session.poll(SECOND // 2) is None
    assert not session.finished
    assert _core.web_sessions(wanted.text, 1, 0) == []


def test_nginx_of_a_run() -> None:
    """It serves its objects, and leaves nothing outside its folder."""
    path = installed.require(["nginx"])["nginx"]
    setup = prepare(plan(flow(WEB, name="web"), duration="1s"), 1)
    (server,) = web.programs(path, setup.run, setup.run.flows)[:1]
    text = server.inputs[0]
    assert isinstance(text, bytes)
    assert b"listen 10.0.0.1:20000;" in text
    assert text.count(b"listen ") == 1
    for word in (b"access_log off;", b"daemon off;", b"pid nginx.pid;"):
        assert word in text
