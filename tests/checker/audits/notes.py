"""Annotations stand directly before the event they explain, or alone.

Directly: among the records of their writer. A batch is not atomic, so that records of other writers may come
between two of its records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..book import Note, producer_of
from ..tables import EXPLAINS

if TYPE_CHECKING:
    from ..audit import Audit
    from ..book import At, Book, Event


def annotated(audit: Audit, book: Book, at: At, event: Event) -> None:
    """Takes an annotation down until its event comes."""
    book.notes.append(Note(event["kind"], at.offset, producer_of(event), event["body"], audit.preceding))


def explained(audit: Audit, book: Book, at: At, event: Event) -> None:
    """The event that follows. Notes of another process, or of an earlier try of this one, stand alone."""
    kind, producer = event["kind"], producer_of(event)
    own = {note.offset: note for note in book.notes if EXPLAINS[note.kind] == kind and note.producer == producer}
    if not own:
        return
    if audit.preceding not in own:
        audit.find(None, "annotation_apart", at, f"{kind} has its annotation at {max(own)}, not directly before it")
    offset = audit.preceding
    while offset in own:
        _content(audit, at, own[offset], event["body"])
        offset = own[offset].preceding


def _content(audit: Audit, at: At, note: Note, body: Event) -> None:
    if note.kind == "TaskFailureAnalysis" and note.body["category"] != body["category"]:
        audit.find(None, "annotation_content", at, f"analysed as {note.body['category']}, failed as {body['category']}")
    elif note.kind == "TaskSkippedByPolicy" and note.body["skipped"] not in body["skip"]:
        audit.find(14, "annotation_content", at, f"step {note.body['skipped']['step']!r} is skipped by policy, but not in the verdict")
