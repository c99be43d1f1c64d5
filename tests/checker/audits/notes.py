"""Annotations stand directly before the event they explain, or alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..book import Note
from ..tables import EXPLAINS

if TYPE_CHECKING:
    from ..audit import Audit
    from ..book import At, Book, Event


def annotated(_audit: Audit, book: Book, at: At, event: Event) -> None:
    """Takes an annotation down until its event comes."""
    book.notes.append(Note(event["kind"], at.offset, _producer(event), event["body"]))


def explained(audit: Audit, book: Book, at: At, event: Event) -> None:
    """The event that follows. Notes of another process, or of an earlier try of this one, stand alone."""
    kind, producer = event["kind"], _producer(event)
    own = {note.offset: note for note in book.notes if EXPLAINS[note.kind] == kind and note.producer == producer}
    if not own:
        return
    offset = at.offset - 1
    while offset in own:
        _content(audit, at, own[offset], event["body"])
        offset -= 1
    if offset == at.offset - 1:
        audit.find(None, "annotation_apart", at, f"{kind} has its annotation at {max(own)}, not directly before it")


def _content(audit: Audit, at: At, note: Note, body: Event) -> None:
    if note.kind == "TaskFailureAnalysis" and note.body["category"] != body["category"]:
        audit.find(None, "annotation_content", at, f"analysed as {note.body['category']}, failed as {body['category']}")
    elif note.kind == "TaskSkippedByPolicy" and note.body["skipped"] not in body["skip"]:
        audit.find(14, "annotation_content", at, f"step {note.body['skipped']['step']!r} is skipped by policy, but not in the verdict")


def _producer(event: Event) -> tuple[str, int]:
    return event["producer"]["instance"], event["producer"]["incarnation"]
