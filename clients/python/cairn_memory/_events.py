"""Reads server-sent events."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from typing import Any, Dict, Iterator, Optional

from ._errors import CairnError

EVENT_STREAM = "text/event-stream"
ENDS_OF_JOBS = {"done", "dead", "cancelled"}
"""States in which a job stays. One that `failed` waits for its next attempt."""
ENDS_OF_DOCUMENTS = {"ready", "empty", "failed", "cancelled"}
"""States in which a document stays."""


@dataclass(frozen=True)
class Event:
    """A server-sent event with its data parsed."""

    event: str
    data: Any
    id: Optional[str] = None


def events_of(response: Any) -> Any:
    if response.headers.get_content_type() == EVENT_STREAM:
        return response
    response.close()
    raise CairnError("no_cairn", "the reply is no stream of events: what answers is no Cairn server")


def parse_events(response: Any) -> Iterator[Event]:
    found: Dict[str, str] = {}
    for line in _lines_of(response):
        name, _, value = line.decode("utf-8", "replace").rstrip("\r\n").partition(":")
        if name == "" and "data" in found:
            try:
                data = json.loads(found["data"])
            except ValueError as error:
                message = "the data of an event are no JSON: what answers is no Cairn server"
                raise CairnError("no_cairn", message) from error
            yield Event(found.get("event", "message"), data, found.get("id"))
            found = {}
        elif name != "":
            found[name] = value.removeprefix(" ")


def without_place(options: Dict[str, Any]) -> Dict[str, Any]:
    """Leaves out the header by which a caller names a place, since the server would prefer it to `cursor`."""
    headers = options.get("headers") or {}
    return {**options, "headers": {name: headers[name] for name in headers if name.lower() != "last-event-id"}}


def is_last(event: Event, is_of_job: bool) -> bool:
    """Whether a stream ends with an event: what it tells of, a job or else a document, is gone or has ended."""
    if event.event != "state":
        return event.event == "gone"
    return event.data["state"] in (ENDS_OF_JOBS if is_of_job else ENDS_OF_DOCUMENTS)


def _lines_of(response: Any) -> Iterator[bytes]:
    try:
        yield from response
    except (OSError, http.client.HTTPException) as error:
        raise CairnError("unreachable", "the stream of events broke off") from error
