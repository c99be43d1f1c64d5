"""Duties of every accepted record: recomputed event_id, writer, numbers of control records, trace."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..ids import name_uuid, uuid_text
from ..tables import CONTROL, NOT_OWNER, SEAL, writer_of

if TYPE_CHECKING:
    from ..audit import Audit
    from ..book import At, Event

_TRACE = re.compile(r"[0-9a-fA-F]{32}")
_TRACEPARENT = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?")
MAX_ATTEMPTS = 256


def check(audit: Audit, at: At, event: Event, headers: list[tuple[bytes, bytes | None]]) -> None:
    """Everything that concerns the envelope alone, and headers no decoder looks at."""
    kind, producer = event["kind"], event["producer"]
    if producer["service"] != writer_of(kind):
        audit.find(5, "foreign_writer", at, f"{kind} was written by {producer['service']}, its writer is {writer_of(kind)}")
    if kind in NOT_OWNER:
        _verdict_id(audit, at, event)
        if event["partition_epoch"] is not None or event["owner_seq"] is not None:
            audit.hint(None, "needless_fence", at, f"{kind} carries partition_epoch or owner_seq")
    else:
        _owner(audit, at, event)
    if kind in CONTROL or kind == SEAL:
        if event["event_sequence"] or event["run_no"] or event["exec_epoch"]:
            audit.find(None, "control_numbers", at, f"{kind} carries event_sequence, run_no or exec_epoch other than 0")
    trace = event["trace_id"]
    if trace and not _TRACE.fullmatch(trace):
        audit.find(None, "trace_id", at, f"trace_id {trace!r} is not 32 hexadecimal digits")
    if not 1 <= event["rule_version"] <= audit.active_rules:
        audit.find(None, "rule_version", at, f"rule_version {event['rule_version']}, active is {audit.active_rules}")
    for name, content in headers if len(headers) > 3 else ():
        if name == b"traceparent":
            _traceparent(audit, at, content or b"", trace.encode())


def _owner(audit: Audit, at: At, event: Event) -> None:
    """Former owners, and the id of an owner's record."""
    producer, claim = event["producer"], audit.claim
    if event["kind"] == "OwnershipClaimed":
        attempt = event["body"]["claim_attempt"]
        if event["owner_seq"]:
            audit.find(None, "claim_owner_seq", at, f"a claim carries owner_seq {event['owner_seq']}, not 0")
    else:
        assert claim is not None, "nothing of an owner is accepted in epoch 0"
        instance, incarnation, attempt = claim
        if producer["instance"] != instance or producer["incarnation"] != incarnation:
            audit.find(5, "former_owner", at, f"{event['kind']} by {producer['instance']}|{producer['incarnation']}, "
                       f"owner is {instance}|{incarnation}")
    stated = event["event_id"]
    name = (f"owner|{audit.partition}|{event['partition_epoch']}|{event['owner_seq'] or 0}|{producer['instance']}"
            f"|{producer['incarnation']}|{attempt}")
    if stated != name_uuid(name):
        audit.find(None, "event_id", at, f"event_id {uuid_text(stated)} is not that of {name}")


def _verdict_id(audit: Audit, at: At, event: Event) -> None:
    """Ids of engine, replayer and auditor; `attempt` is not in the log, so the first ones are tried."""
    kind, instance, stated = event["kind"], event["producer"]["instance"], event["event_id"]
    if kind == SEAL:
        end = _sealed_end(event["body"]["note"])
        if end is None:
            audit.hint(None, "seal_note", at, "the note names no size, so its event_id can't be checked")
        elif stated != name_uuid(f"seal|{audit.partition}|{end}|{instance}"):
            audit.find(None, "event_id", at, f"event_id {uuid_text(stated)} is not that of the seal up to {end}")
        return
    start = f"verdict|{event['task_id']}|{event['event_sequence']}|{kind}|{instance}|"
    for attempt in range(MAX_ATTEMPTS):
        if stated == name_uuid(f"{start}{attempt}"):
            return
    audit.find(None, "event_id", at, f"event_id {uuid_text(stated)} is not that of {start}0 to {MAX_ATTEMPTS - 1}")


def _sealed_end(note: str) -> int | None:
    """Size in the second line of a note in checkpoint form."""
    lines = note.split("\n", 2)
    return int(lines[1]) if len(lines) > 2 and lines[1].isascii() and lines[1].isdigit() else None


def _traceparent(audit: Audit, at: At, content: bytes, trace: bytes) -> None:
    match = _TRACEPARENT.fullmatch(content)
    wrong = (not match or match[1] == b"ff" or match[1] == b"00" and match[4] is not None
             or not match[2].strip(b"0") or not match[3].strip(b"0"))
    if wrong:
        audit.find(None, "traceparent", at, f"header traceparent {content!r} is not a W3C trace context")
    elif _TRACE.fullmatch(trace.decode()) and match[2] != trace.lower():
        audit.find(None, "traceparent", at, f"header traceparent {content!r} is of another trace than the event's {trace!r}")
