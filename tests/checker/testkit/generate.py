"""Writes big good logs: many tasks at once, interleaved, some failing, some lost, with take-overs and zombies.

`python3 tests/checker/testkit/generate.py OUT.dtlog --records 200000` writes a dump and, next to it, its verdict file.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from random import Random
from typing import Iterator

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from testkit.author import Author, skip  # noqa: E402  (the path above must come first)
from testkit.tales import witness_lines  # noqa: E402

from checker.container import write_section  # noqa: E402


def life(a: Author, random: Random) -> Iterator[None]:
    """One task from birth to its end, a record or batch between two yields."""
    task, fails, loses, cancelled = a.create(), random.random() < 0.1, random.random() < 0.02, random.random() < 0.01
    yield
    proof = 0
    while True:
        a.assign(task, f"w{random.randrange(8)}")
        yield
        a.start(task, a.tasks[task].worker)
        yield
        if cancelled:
            a.request_cancel(task)
            yield
            a.cancel(task)
            break
        if not proof:
            proof = a.step(task, "pick")
            yield
        if loses:
            a.lose(task)
        elif fails:
            a.fail(task, analysis=True)
        else:
            a.complete(task)
            break
        yield
        skips = (skip("pick", proof),)
        a.approve(task, lost=loses, skips=skips)
        yield
        a.plan(task, skips, (proof,))
        yield
        a.retry(task)
        yield
        fails = loses = False
    if random.random() < 0.01:
        yield
        a.replay(task, "START")
        yield
        a.plan(task)
        yield
        a.retry(task)
        yield
        a.assign(task)
        yield
        a.complete(task, "again")


def generate(records: int, seed: int = 1, at_once: int = 200) -> Author:
    """About so many records; every task is closed at the end."""
    random, a, lives, starts = Random(seed), Author(), [], 1
    a.claim()
    while lives or len(a.entries) < records:
        if len(a.entries) < records and len(lives) < at_once:
            lives.append(life(a, random))
        index = random.randrange(len(lives))
        if next(lives[index], "over") == "over":
            lives[index] = lives[-1]
            lives.pop()
        if random.random() < 0.0005:
            old, before = a.owner, a.epoch
            starts += 1
            a.claim(f"c-{starts % 3}", 99 + starts, starts)
            a.append(a.event("OwnershipRenewed", {}, owner=old, partition_epoch=before, owner_seq=1 << 40))
    return a


def main() -> None:
    """Command line."""
    parse = argparse.ArgumentParser(description="Writes a big good log and its verdict file.")
    parse.add_argument("out", type=Path)
    parse.add_argument("--records", type=int, default=100_000)
    parse.add_argument("--seed", type=int, default=1)
    arguments = parse.parse_args()
    records = generate(arguments.records, arguments.seed).records()
    with arguments.out.open("wb") as out:
        write_section(out, 7, records)
    lines = witness_lines(records, every=1_000)
    with arguments.out.with_name(arguments.out.stem + ".verdicts.jsonl").open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(line) + "\n" for line in lines)


if __name__ == "__main__":
    main()
