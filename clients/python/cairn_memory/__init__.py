"""Client of Cairn, memory for AI agents. It needs nothing but the standard library."""

from ._client import NULL, CairnError, Event, File
from ._generated import Client

__all__ = ["CairnError", "Client", "Event", "File", "NULL"]
