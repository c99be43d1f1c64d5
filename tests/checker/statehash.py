"""Canonical state and its hash (schemas/state.md), recomputed only for tasks that changed since the last digest."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

from .tables import STATES
from .xxh3 import xxh3_128

if TYPE_CHECKING:
    from .fold import Fold, Task

_TASK = Struct(">BqBBIII16sIII")
_PARTITION = Struct(">BHIQqqII")
_STATE_INDEX = {state: index for index, state in enumerate(STATES)}
_I64 = (1 << 63) - 1
_MASK = (1 << 128) - 1


def task_bytes(task_id: int, task: Task) -> bytes:
    """The 51 canonical bytes of an open task."""
    flags = task.cancel_requested | task.closed_by_lost << 1 | task.assigned_from_retrying << 2
    return _TASK.pack(
        1, task_id, _STATE_INDEX[task.state], flags, task.version, task.run_no, task.exec_epoch, task.execution_id,
        task.retry_count, task.lost_count, task.max_retries,
    )


def partition_bytes(fold: Fold) -> bytes:
    """The canonical bytes of the partition's own fields."""
    queues = sorted(queue.encode("utf-8") for queue in fold.paused)
    head = _PARTITION.pack(
        0, fold.partition, fold.epoch, fold.owner_seq, fold.highest, min(max(fold.row_clock, -_I64 - 1), _I64),
        fold.active_rules, len(queues),
    )
    return head + b"".join(len(queue).to_bytes(4, "big") + queue for queue in queues)


class StateHash:
    """Sum of the hashes of the open tasks, kept up lazily."""

    def __init__(self) -> None:
        self._sum = 0
        self._hashes: dict[int, int] = {}
        self._touched: set[int] = set()

    def touch(self, task_id: int) -> None:
        """Says that a task was opened, changed or closed."""
        self._touched.add(task_id)

    def digest(self, fold: Fold) -> str:
        """State hash as 32 hexadecimal digits."""
        for task_id in self._touched:
            self._sum -= self._hashes.pop(task_id, 0)
            task = fold.open.get(task_id)
            if task is not None:
                self._hashes[task_id] = hashed = xxh3_128(task_bytes(task_id, task))
                self._sum += hashed
        self._touched.clear()
        return f"{(self._sum + xxh3_128(partition_bytes(fold))) & _MASK:032x}"
