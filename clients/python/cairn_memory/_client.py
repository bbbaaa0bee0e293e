"""Sends requests to a Cairn server by the standard library alone."""

from __future__ import annotations

import http.client
import json
import secrets
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Set, Tuple

from ._errors import CairnError, error_of, is_away, wait_before, wait_for_return
from ._events import EVENT_STREAM, Event, events_of, is_last, parse_events, without_place

HELD_S = 1.0
"""Time after which an open stream of events shows that the server is back, in seconds."""
MAX_BATCH_BYTES = 1_000_000
"""Most bytes of memories in one request; the server takes 1 MiB with everything around them."""


class Operation(NamedTuple):
    """How an operation of the API is sent."""

    method: str
    path: str
    query: Optional[List[str]]
    """Fields of the query string of an operation with a body; None for an operation without one."""
    page: Optional[str]
    is_repeatable: bool
    takes_idempotency_key: bool
    has_events: bool
    is_text: bool
    takes_more: bool
    """Whether the body has any other fields, too."""


class _Null:
    """The type of `NULL`."""


NULL: Any = _Null()
"""Value of a field that is to be sent as null. A field that is None is left out, and so keeps what it had."""


@dataclass(frozen=True)
class File:
    """A file to be uploaded; `content` is the whole of it."""

    name: str
    content: bytes


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: urllib would send the key to wherever it leads."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirects)


class BaseClient:
    """A connection to one server. Nothing is sent before the first call.

    :param url: address of the server; a path is kept, for a server behind a proxy
    :param key: key or token; none is sent by default
    :param timeout: longest silence of the server, in seconds
    :param retries: most attempts after the first; only what may be repeated is sent again

    Every method takes these options, too: `idempotency_key` (False for none), `if_match`, `request_id`, `headers`,
    `timeout`, `retries`.
    """

    def __init__(
        self,
        url: str,
        key: Optional[str] = None,
        *,
        tenant: Optional[str] = None,
        timeout: float = 90.0,
        retries: int = 2,
        headers: Optional[Dict[str, str]] = None,
    ) -> None:
        if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
            raise CairnError("invalid", "url: expected an address such as http://127.0.0.1:8080")
        self._base = url.rstrip("/")
        self._timeout = timeout
        self._retries = retries
        self._headers = dict(headers or {})
        if key is not None:
            self._headers["authorization"] = f"Bearer {key}"
        if tenant is not None:
            self._headers["x-cairn-tenant"] = tenant

    def each(self, method: Any, **fields: Any) -> Iterator[Any]:
        """Yields every entry of a list, page by page: `client.each(client.list_memories, user_id="ana")`. An entry that
        is there all the time is yielded once, whatever is added and deleted meanwhile."""
        from ._generated import OPERATIONS

        by = OPERATIONS[method.__name__].page
        if by is None:
            raise CairnError("invalid", f"{method.__name__} does not list pages")
        if by in ("u", "offset"):
            yield from self._each_by_offset(method, fields, by)
            return
        page = method(**fields)
        while True:
            yield from page["items"]
            following = page.get("next", page.get("next_cursor"))
            if following is None and page.get("has_more"):
                following = page.get("cursor")
            if following is None:
                return
            page = self._outlast(method, {**fields, by: following})

    def _each_by_offset(self, method: Any, fields: Dict[str, Any], by: str) -> Iterator[Any]:
        """Yields the entries of a list whose pages are counted from its beginning. Entries that are deleted meanwhile
        move the others towards the beginning, so each page begins with the last entry of the page before, and where it
        does not, the walk goes back until a page begins with an entry that was yielded. Keeps the id of every entry;
        entries without one are read by their count alone."""
        start = fields.get("u") or 0
        size = max(2, fields.get("l") or 100)
        yielded: Set[str] = set()
        page = method(**fields)
        place, step, is_sure = start, size, True
        while True:
            items = page["items"]
            first = _key_of(items[0]) if items else None
            if not is_sure and place > start and (first is None or first not in yielded):
                place, step = max(start, place - step), step * 2
            else:
                step, is_news = size, False
                for entry in items:
                    key = _key_of(entry)
                    if key is not None:
                        if key in yielded:
                            continue
                        yielded.add(key)
                    is_news = True
                    yield entry
                end = place + len(items)
                is_last = page.get("next") is None if by == "u" else not items or end >= page.get("total", end + 1)
                # A page that holds one entry of many megabytes cannot bring the next one as well.
                is_stuck = not is_news and len(items) < 2
                if is_last or (by == "offset" and is_stuck and page.get("total") is None):
                    return
                is_sure = first is None or is_stuck
                place = end if is_sure else end - 1
            page = self._outlast(method, {**fields, "l": size, "u": place})

    def _outlast(self, method: Any, fields: Dict[str, Any]) -> Any:
        """Asks until there is an answer, for at most a minute if the server is away; once, if `retries` is 0."""
        away_since: Optional[float] = None
        while True:
            try:
                return method(**fields)
            except CairnError as error:
                if fields.get("retries", self._retries) == 0:
                    raise
                away_since = away_since or time.monotonic()
                time.sleep(wait_for_return(error, away_since, 0.5))

    def ready(self, reply: Any, *, timeout: float = 600.0) -> Any:
        """Waits until all work that a reply names is done, and returns the reply. A server that is away or busy, as in
        a restart, is asked again for up to a minute.

        :raises CairnError: `job_failed` if work ends without success, `timeout`
        """
        until = time.monotonic() + timeout
        results = reply.get("results", [])
        for job_id in [one["job_id"] for one in [reply, *results] if one.get("job_id") is not None]:
            self._wait_for_job(job_id, until, CairnError("timeout", f"job {job_id} took more than {timeout} s"))
        return reply

    def _wait_for_job(self, job_id: str, until: float, too_long: CairnError) -> None:
        pause, away_since = 0.05, None
        while True:
            ask_again = pause
            left = until - time.monotonic()
            try:
                # It is asked again here, within the time that is left.
                limits = {"retries": 0, "timeout": min(self._timeout, max(left, 0.05))}
                job = self.get_job(id=job_id, **limits)  # type: ignore[attr-defined]
                if job["state"] == "done":
                    return
                if job["state"] in ("dead", "cancelled"):
                    raise CairnError("job_failed", f"job {job_id} is {job['state']}")
                away_since = None
            except CairnError as error:
                if error.code == "not_found":
                    return
                if error.code == "timeout" and time.monotonic() >= until:
                    raise too_long from error
                away_since = away_since or time.monotonic()
                ask_again = wait_for_return(error, away_since, pause)
            if time.monotonic() + ask_again > until:
                raise too_long
            time.sleep(ask_again)
            pause = min(2.0, pause * 1.5)

    def add_all(self, memories: Iterable[Dict[str, Any]], *, batch_size: int = 100) -> Iterator[Dict[str, Any]]:
        """Adds any number of memories, some in each request, and yields the result of each with its `index`. One that
        the server refuses has an `error` in its result, and the others are stored.

        :param batch_size: most memories in one request, 1 to 100; a request also has at most 1 MB of them
        """
        index = 0
        for items in _batches_of(memories, batch_size):
            if len(items) == 1 and _bytes_of(items[0]) > MAX_BATCH_BYTES:
                # The server would end the connection in the middle of such a request.
                results = [{"error": {"code": "too_large", "message": "a memory of over 1 MB"}}]
            else:
                results = self.add_memories(items=items)["results"]  # type: ignore[attr-defined]
            for result in results:
                yield {**result, "index": index}
                index += 1

    def _call(self, operation: Operation, fields: Dict[str, Any], options: Dict[str, Any]) -> Any:
        text = self._send(operation, fields, options, _read_text)
        if operation.is_text:
            return text
        try:
            return json.loads(text)
        except ValueError as error:
            raise CairnError("no_cairn", "the reply is no JSON: what answers is no Cairn server") from error

    def _watch(self, operation: Operation, fields: Dict[str, Any], options: Dict[str, Any]) -> Iterator[Event]:
        """Yields the events of a stream. One that breaks off, or ends before what it tells of has ended, as in a
        restart of the server, is opened again for up to a minute, behind the last event if its events have places."""
        broken_since: Optional[float] = None
        was_open = has_ended = False
        if fields.get("cursor") == "latest":
            # The place that `latest` stands for, so that a stream which is opened again misses nothing.
            newest = {**fields, "limit": 1, **options}
            fields = {**fields, "cursor": self.list_events(**newest)["cursor"]}  # type: ignore[attr-defined]
        is_of_job = operation.path.startswith("/jobs/")
        while True:
            open_since = float("inf")
            try:
                with self._send(operation, fields, options, events_of) as response:
                    was_open, open_since = True, time.monotonic()
                    for event in parse_events(response):
                        broken_since = None
                        if event.id is not None:
                            fields, options = {**fields, "cursor": event.id}, without_place(options)
                        has_ended = is_last(event, is_of_job)
                        yield event
                if has_ended:
                    return
                raise CairnError("unreachable", "the stream of events ended too soon")
            except CairnError as error:
                if has_ended and is_away(error):
                    return
                if not was_open or options.get("retries", self._retries) == 0:
                    raise
                # A server whose stream held was back, even if nothing happened that it could tell.
                if time.monotonic() - open_since > HELD_S:
                    broken_since = None
                broken_since = broken_since or time.monotonic()
                time.sleep(wait_for_return(error, broken_since, 0.5))

    def _send(
        self,
        operation: Operation,
        fields: Dict[str, Any],
        options: Dict[str, Any],
        read: Callable[[Any], Any],
    ) -> Any:
        known = {"idempotency_key", "if_match", "request_id", "headers", "timeout", "retries"}
        more = {name: options[name] for name in options if name not in known}
        if more and not operation.takes_more:
            raise TypeError(f"unknown fields: {', '.join(sorted(more))}")
        # Elsewhere a key would promise what no server keeps.
        key = options.get("idempotency_key") if operation.takes_idempotency_key else False
        if key is None:
            key = secrets.token_hex(16)
        request, may_repeat = self._request(operation, {**fields, **more}, {**options, "idempotency_key": key})
        retries = options.get("retries", self._retries)
        for attempt in range(retries + 1):
            try:
                return read(_OPENER.open(request, timeout=options.get("timeout", self._timeout)))
            except urllib.error.HTTPError as error:
                failure = error_of(error)
            except (OSError, http.client.HTTPException) as error:
                failure = self._lost(error)
            wait = wait_before(failure, may_repeat, attempt)
            if wait is None or attempt == retries:
                raise failure
            time.sleep(wait)
        raise AssertionError("a loop without an attempt")

    def _lost(self, error: Exception) -> CairnError:
        reason = getattr(error, "reason", error)
        if isinstance(reason, TimeoutError):
            return CairnError("timeout", f"no reply from {self._base} in time")
        return CairnError("unreachable", f"no reply from {self._base}: {reason}")

    def _request(
        self, operation: Operation, fields: Dict[str, Any], options: Dict[str, Any]
    ) -> Tuple[urllib.request.Request, bool]:
        rest = {name: None if value is NULL else value for name, value in fields.items() if value is not None}
        path = "/".join(_segment(part, rest) for part in operation.path.split("/"))
        in_body = {name: rest[name] for name in rest if operation.query is not None and name not in operation.query}
        query = [
            (name, _text(one))
            for name, value in rest.items()
            if name not in in_body
            for one in (value if isinstance(value, list) else [value])
        ]
        headers = {**self._headers, **(options.get("headers") or {})}
        named = {"idempotency-key": "idempotency_key", "if-match": "if_match", "x-request-id": "request_id"}
        headers.update({name: options[option] for name, option in named.items() if options.get(option)})
        if operation.has_events:
            headers["accept"] = EVENT_STREAM
        elif not operation.is_text:
            # The routes of MCP refuse whoever does not accept both; all others answer with JSON then.
            headers["accept"] = f"application/json, {EVENT_STREAM}"
        data: Optional[bytes] = None
        if isinstance(in_body.get("file"), File):
            data, headers["content-type"] = _form(in_body)
        elif operation.query is not None and (in_body or operation.method != "DELETE"):
            data, headers["content-type"] = json.dumps(in_body).encode(), "application/json"
        url = self._base + path + ("?" + urllib.parse.urlencode(query) if query else "")
        may_repeat = options["idempotency_key"] is not False or (
            operation.is_repeatable and options.get("if_match") is None
        )
        return urllib.request.Request(url, data=data, headers=headers, method=operation.method), may_repeat


def _key_of(entry: Any) -> Optional[str]:
    """What tells an entry from all others of its list; None for one that has neither id, place nor name.

    Several items of a batch may have the same memory, so the place in the batch comes before it.
    """
    key = next((entry[name] for name in ("id", "item", "memory_id", "name") if entry.get(name) is not None), None)
    return str(key) if isinstance(key, (str, int)) else None


def _bytes_of(memory: Dict[str, Any]) -> int:
    return len(json.dumps(memory).encode())


def _batches_of(memories: Iterable[Dict[str, Any]], most: int) -> Iterator[List[Dict[str, Any]]]:
    """Divides memories into requests that the server takes; one that is too large stands alone."""
    batch: List[Dict[str, Any]] = []
    size = 0
    for memory in memories:
        own = _bytes_of(memory) + 2
        if batch and (len(batch) >= most or size + own > MAX_BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(memory)
        size += own
    if batch:
        yield batch


def _read_text(response: Any) -> str:
    with response:
        # What is no UTF-8 is no JSON either, which is told by who parses it.
        text = response.read().decode("utf-8", "replace")
    if response.headers.get_content_type() == EVENT_STREAM:
        # MCP answers with a stream, whose last message is the reply.
        return ([""] + [line[5:] for line in text.splitlines() if line.startswith("data:")])[-1]
    return text


def _segment(part: str, fields: Dict[str, Any]) -> str:
    """Fills in a parameter. A segment that is empty, `.` or `..` would make another path, and so another request."""
    if not part.startswith("{"):
        return part
    value = str(fields.pop(part[1:-1], ""))
    if value in ("", ".", ".."):
        raise CairnError("invalid", f"{part[1:-1]}: expected a text, which cannot be empty")
    return urllib.parse.quote(value, safe="")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _form(fields: Dict[str, Any]) -> Tuple[bytes, str]:
    """Encodes a form. The file comes last, since what follows it is not read before the file is."""
    boundary = f"cairn-{secrets.token_hex(16)}"
    file: File = fields["file"]
    parts = [
        f'--{boundary}\r\ncontent-disposition: form-data; name="{name}"\r\n\r\n'
        f"{value if isinstance(value, str) else json.dumps(value)}\r\n"
        for name, value in fields.items()
        if name != "file"
    ]
    file_name = "".join(" " if ord(letter) < 32 else letter for letter in file.name).replace('"', "%22")
    head = f'--{boundary}\r\ncontent-disposition: form-data; name="file"; filename="{file_name}"\r\n\r\n'
    body = "".join(parts).encode() + head.encode() + file.content + f"\r\n--{boundary}--\r\n".encode()
    return body, f"multipart/form-data; boundary={boundary}"
