"""Command line: which files to check, how, and how to say it."""

from __future__ import annotations

import argparse
import gc
import json
import sys
from dataclasses import fields
from pathlib import Path
from typing import Iterator

from .book import Limits
from .container import Section, Unreadable, read_sections
from .decode import Decoder
from .embedded import read_directory
from .partition import Options, Result, check_section
from .story import Story
from .verdicts import read_witnesses

CONTENT, FINDINGS, UNREADABLE = 0, 1, 2


def parser() -> argparse.ArgumentParser:
    """Options of the checker."""
    parse = argparse.ArgumentParser(
        prog="checker", description="Checks raw logs of Dualtrack's event track independently of the product.",
        epilog="exit code: 0 content, 1 findings, 2 cannot read")
    parse.add_argument("files", nargs="+", type=Path, metavar="FILE", help="*.dtlog dumps, or directories of the embedded event log")
    parse.add_argument("--compare", action="append", default=[], type=Path, metavar="VERDICTS",
                       help="verdict file of the production fold (JSON lines); may be given several times")
    parse.add_argument("--output", choices=("text", "json"), default="text", help="form of the report")
    parse.add_argument("--verdicts", action="store_true", help="print one line per record before the report (text only)")
    parse.add_argument("--complete", action="store_true", help="the log is complete: no task may be open at its end")
    parse.add_argument("--strict", action="store_true", help="hints count as findings for the exit code")
    for limit in fields(Limits):
        parse.add_argument(f"--{limit.name.replace('_', '-')}", type=int, default=limit.default, metavar="MS",
                           help=f"bound in ms (default {limit.default})")
    return parse


def sections(files: list[Path]) -> Iterator[Section]:
    """Partitions of all inputs, one after the other."""
    for file in files:
        if file.is_dir():
            yield from read_directory(file)
            continue
        try:
            data = file.read_bytes()
        except OSError as error:
            raise Unreadable(f"{file}: {error.strerror}") from error
        if not data:
            raise Unreadable(f"{file}: empty")
        yield from read_sections(data, str(file))


def run(arguments: argparse.Namespace) -> list[Result]:
    """Checks all partitions."""
    options = Options(Limits(**{limit.name: getattr(arguments, limit.name) for limit in fields(Limits)}),
                      arguments.complete)
    witnesses, decoder, results = read_witnesses(arguments.compare), Decoder(), []
    nameless = witnesses.pop(None, None)
    for section in sections(arguments.files):
        if any(result.partition == section.partition for result in results):
            raise Unreadable(f"{section.source}: partition {section.partition} a second time")
        witness = witnesses.pop(section.partition, None) or nameless
        tell = Story(sys.stdout.write).tell if arguments.verdicts and arguments.output == "text" else None
        if tell is not None:
            print(f"# partition {section.partition}")
        results.append(check_section(section, decoder, witness, options, tell))
    if nameless is not None and len(results) > 1:
        raise Unreadable("verdict lines must name their partition when several are checked")
    if witnesses:
        raise Unreadable(f"verdicts of partitions that are not in the input: {sorted(map(str, witnesses))}")
    return results


def print_text(results: list[Result]) -> None:
    """The report for people."""
    for result in results:
        print(f"partition {result.partition} ({result.source}): {result.records} records, offsets {result.start} to {result.end}")
        print(f"  accepted {result.accepted} (applied {result.applied}, control {result.control})")
        for name, counts in (("rejected", result.rejected), ("quarantined", result.quarantined),
                             ("open", result.open_by_state), ("closed", result.closed_by_state)):
            shown = ", ".join(f"{key} {number}" for key, number in sorted(counts.items()))
            print(f"  {name} {sum(counts.values())}{': ' if shown else ''}{shown}")
        print(f"  state hash {result.state_hash}")
        for finding in result.findings.kept:
            print(f"  {finding.as_text()}")
        for code, number in sorted(result.findings.counts.items()):
            shown = sum(finding.code == code for finding in result.findings.kept)
            if number > shown:
                print(f"  {code}: {number - shown} more")


def main(argv: list[str]) -> int:
    """Checks and reports; returns the exit code."""
    arguments = parser().parse_args(argv)
    gc.disable()  # the books are large and hold no cycles; collecting them costs a third of the time
    try:
        results = run(arguments)
    except Unreadable as error:
        print(f"cannot read: {error}", file=sys.stderr)
        return UNREADABLE
    if arguments.output == "json":
        json.dump({"format": 1, "partitions": [result.as_json() for result in results]}, sys.stdout, indent=1)
        print()
    else:
        print_text(results)
        hard = sum(result.findings.hard for result in results)
        hints = sum(sum(result.findings.counts.values()) for result in results) - hard
        print(f"{len(results)} partitions, {sum(r.records for r in results)} records, {hard} findings, {hints} hints")
    if any(result.stopped_at is not None for result in results):
        return UNREADABLE
    counted = any(result.findings.hard or arguments.strict and result.findings.counts for result in results)
    return FINDINGS if counted else CONTENT
