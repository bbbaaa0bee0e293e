"""What goes wrong with a request, and when it is sent again."""

from __future__ import annotations

import email.utils
import http.client
import json
import random
import time
import urllib.error
import urllib.parse
from typing import Any, Dict, List, Optional

MAX_WAIT_S = 60.0
"""Longest wait that a server may ask for; a longer one is left to the caller."""
AWAY_S = 60.0
"""Longest time for which whatever waits anyway waits for a server that is away, as in a restart."""


class CairnError(Exception):
    """Every failure of a request. Programs branch on `code`, which is the API's code, `unreachable` if no reply came,
    `timeout` if none came in time, `no_cairn` if what answers is no Cairn server, or `job_failed` while waiting for
    work."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status: Optional[int] = None,
        errors: Optional[List[str]] = None,
        request_id: Optional[str] = None,
        retry_after_s: Optional[float] = None,
        may_be_written: bool = False,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.errors = errors or []
        self.request_id = request_id
        self.retry_after_s = retry_after_s
        self.may_be_written = may_be_written
        """True if the change may be stored although it failed, as the answer to its commit was lost."""


def error_of(error: urllib.error.HTTPError) -> CairnError:
    common: Dict[str, Any] = {
        "status": error.code,
        "request_id": error.headers.get("x-request-id"),
        "retry_after_s": wait_of(error.headers.get("retry-after", "")),
    }
    location = error.headers.get("location")
    if location is not None and 300 <= error.code < 400:
        return CairnError("no_cairn", _describe_redirect(location, error.url), **common)
    try:
        problem = json.loads(error.read())
        code, detail = problem["code"], problem["detail"]
    except (ValueError, KeyError, TypeError, OSError, http.client.HTTPException):
        code = "unavailable" if error.code in (429, 502, 503, 504) else "no_cairn"
        return CairnError(code, f"status {error.code}, without a description", **common)
    common["request_id"] = common["request_id"] or problem.get("request_id")
    may_be_written = problem.get("may_be_written") is True
    return CairnError(code, detail, errors=problem.get("errors"), may_be_written=may_be_written, **common)


def _describe_redirect(location: str, url: str) -> str:
    """Names both addresses without their query strings, which may hold secrets."""
    asked = urllib.parse.urlsplit(url)
    try:
        target = urllib.parse.urlsplit(urllib.parse.urljoin(url, location))
        shown = f"{target.scheme}://{target.netloc.rpartition('@')[2]}{target.path}"
    except ValueError:
        shown = "another address"
    origin = f"{asked.scheme}://{asked.netloc}"
    return f"{origin} redirects to {shown}, which is not followed: give the address of the server itself"


def wait_of(retry_after: str) -> Optional[float]:
    """Seconds that `Retry-After` names, which holds a number, or with some proxies a date."""
    if retry_after.isdigit():
        return float(retry_after) or None
    try:
        seconds = email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time()
    except (ValueError, TypeError):
        return None
    return seconds if seconds > 0 else None


def is_away(error: CairnError) -> bool:
    """Whether an error says that the server is away or busy, which may pass by itself."""
    return error.code == "unreachable" or error.status in (429, 502, 503, 504)


def wait_for_return(error: CairnError, away_since: float, least: float) -> float:
    """Seconds after which a server that is away is asked again.

    :param away_since: time of the first failure in a row, by the monotonic clock
    :param least: shortest wait, for a server that names none or a shorter one
    :raises CairnError: `error` itself if it says something else, if the server was away for `AWAY_S`, or if it asks for
        a wait that is left to the caller
    """
    named = error.retry_after_s or 0
    if not is_away(error) or time.monotonic() - away_since > AWAY_S or named > MAX_WAIT_S:
        raise error
    return max(least, named)


def wait_before(error: CairnError, may_repeat: bool, attempt: int) -> Optional[float]:
    """Seconds until the next attempt; None if the request must not be sent again."""
    is_busy = error.status in (429, 503) and not error.may_be_written
    is_lost = error.code == "unreachable" or error.status in (502, 504) or error.may_be_written
    if not is_busy and not (is_lost and may_repeat):
        return None
    if error.retry_after_s is not None:
        return error.retry_after_s if error.retry_after_s <= MAX_WAIT_S else None
    return min(8.0, 0.5 * 2**attempt) * (1 - random.random() / 4)
