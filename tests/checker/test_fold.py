"""Acceptance: every reason, told as histories. Expected lines stand as a person would read them."""

import re
import unittest

import testkit
from checker.partition import Options, check_section
from checker.story import Story
from checker.tables import HISTORY_CODE, REASONS
from testkit.author import Author
from testkit.tales import DECODER, Memory, every_kind


def told(author, wanted=None):
    """The history as lines without offsets; only those of `wanted` offsets if given."""
    lines = []
    story = Story(lambda line: lines.append(line.split(": ", 1)[1].strip()))
    check_section(Memory(author.records()), DECODER, None, Options(), story.tell)
    return lines if wanted is None else [lines[offset] for offset in wanted]


class Histories(unittest.TestCase):
    """What each record of a history comes to."""

    def setUp(self):
        self.a = Author()
        self.a.claim()

    def ends(self, *expected):
        self.assertEqual(told(self.a)[-len(expected):], list(expected))

    def test_late_completion_wins_until_the_next_assignment(self):
        a = self.a
        t = a.create(max_retries=2)
        a.assign(t)
        a.lose(t)
        a.approve(t, lost=True)
        a.plan(t)
        a.retry(t)
        a.complete(t)
        self.ends("lose t1 e=1 => LOST", "approve t1 r=0 l=1 e=1 => RETRY_APPROVED", "plan t1 from=- e=1 => REPLAY_PLANNED",
                  "retry t1 e=1 => RETRYING", "complete t1 e=1 => SUCCESS")

    def test_stale_attempt(self):
        a = self.a
        t = a.create()
        a.assign(t)
        first = a.tasks[t].execution
        a.fail(t)
        a.approve(t)
        a.plan(t)
        a.retry(t)
        a.assign(t, "w2")
        a.complete(t, counts=False, exec_epoch=1, execution_id=first)
        a.complete(t, counts=False, exec_epoch=2, execution_id=first)
        a.complete(t)
        self.ends("complete t1 e=1 => rejected(wrong_attempt)", "complete t1 e=2 => rejected(wrong_attempt)",
                  "complete t1 e=2 => SUCCESS")

    def test_released_goes_back_where_it_came_from(self):
        a = self.a
        t = a.create()
        a.assign(t)
        a.release(t)
        a.assign(t)
        a.fail(t)
        a.approve(t)
        a.plan(t)
        a.retry(t)
        a.assign(t)
        a.release(t)
        lines = told(a)
        self.assertEqual((lines[3], lines[-1]), ("release t1 DRAIN e=1 => CREATED", "release t1 DRAIN e=3 => RETRYING"))

    def test_not_late_after_a_failure(self):
        a = self.a
        t = a.create()
        a.assign(t)
        a.fail(t)
        a.complete(t, counts=False)
        self.ends("fail t1 E_NET e=1 => FAILED", "complete t1 e=1 => rejected(not_allowed)")

    def test_attempt_zero_is_nobodys(self):
        t = self.a.create()
        self.a.start(t, counts=False)
        self.ends("start t1 => rejected(wrong_attempt)")

    def test_step_before_start(self):
        t = self.a.create()
        self.a.assign(t)
        self.a.step(t, "pick", counts=False)
        self.ends("step t1 pick e=1 => rejected(not_allowed)")

    def test_cancel(self):
        a = self.a
        t = a.create()
        a.cancel(t, counts=False)
        a.request_cancel(t)
        a.request_cancel(t, counts=False)
        a.assign(t, counts=False)
        a.cancel(t)
        self.ends("cancel t1 => rejected(cancel_requested)", "request-cancel t1 => ok",
                  "request-cancel t1 => rejected(cancel_requested)", "assign t1 w1 e=1 => rejected(cancel_requested)",
                  "cancel t1 e=1 => CANCELLED")

    def test_retries_are_counted_apart_from_losses(self):
        a = self.a
        t = a.create(max_retries=0)
        for _ in range(5):
            a.assign(t)
            a.lose(t)
            a.approve(t, lost=True)
            a.plan(t)
            a.retry(t)
        a.assign(t)
        a.lose(t)
        a.approve(t, lost=True, counts=False)
        a.give_up(t)
        u = a.create(max_retries=0)
        a.assign(u)
        a.fail(u)
        a.approve(u, counts=False)
        self.ends("lose t1 e=6 => LOST", "approve t1 r=0 l=6 e=6 => rejected(retries_exhausted)",
                  "give-up t1 E_NET e=6 => FAILED_PERMANENTLY", "submit t2 max=0 id=%d => CREATED" % u,
                  "assign t2 w1 e=1 => ASSIGNED", "fail t2 E_NET e=1 => FAILED",
                  "approve t2 r=1 l=0 e=1 => rejected(retries_exhausted)")

    def test_births(self):
        a = self.a
        t = a.create()
        a.act(t, "TaskCreated", a.tasks[t].created, counts=False, event_sequence=1)
        a.create(event_sequence=2)
        a.create(run_no=2)
        self.assertEqual([line.split(" => ")[1] for line in told(a)[-3:]],
                         ["rejected(id_order)", "rejected(stale_sequence)", "rejected(wrong_run)"])

    def test_closed_and_unknown_tasks(self):
        a = self.a
        t = a.create()
        a.replay(t, counts=False, run_no=2)
        a.tasks[t].run = 1
        a.assign(t)
        a.complete(t)
        a.start(t, counts=False)
        a.replay(t, carry={"state": "FAILED"}, counts=False)
        a.tasks[t].run = 1
        a.review(t, counts=False, run_no=2)
        u = a.create()
        a.tasks[u + 1] = a.tasks[u]
        a.replay(u + 1, counts=False)
        reasons = [line.split(" => ")[1] for line in told(a)]
        self.assertEqual(reasons[2], "rejected(task_open)")
        self.assertEqual(reasons[5:8], ["rejected(unknown_task)", "rejected(carried_state)", "rejected(carried_state)"])
        self.assertEqual(reasons[-1], "rejected(unknown_task)")

    def test_sequence_and_run(self):
        a = self.a
        t = a.create()
        a.assign(t, counts=False, event_sequence=3)
        a.tasks[t].epoch = 0
        a.assign(t, counts=False, run_no=2)
        a.overdue(t, "CREATED", "worker", event_sequence=2)
        a.overdue(t, "CREATED", "worker")
        a.reject_report(t, bytes(16), event_sequence=2)
        a.reject_report(t, bytes(16))
        self.assertEqual([line.split(" => ")[1] for line in told(a)[-6:]],
                         ["rejected(stale_sequence)", "rejected(wrong_run)", "rejected(stale_sequence)", "ok",
                          "rejected(stale_sequence)", "ok"])

    def test_fence(self):
        a, old = self.a, self.a.owner
        t = a.create()
        a.claim("c-2", 120)
        a.assign(t, counts=False, partition_epoch=1, owner_seq=99, owner=old)
        a.tasks[t].epoch = 0
        a.control("OwnershipRenewed")
        a.append(a.event("OwnershipRenewed", {}, owner_seq=1))
        a.append(a.event("OwnershipRenewed", {}, owner_seq=None))
        a.append(a.event("OwnershipClaimed", {"url": "", "claim_attempt": 1}, partition_epoch=2))
        a.append(a.event("RulesActivated", {"activated": 1}))
        self.ends("assign t1 w1 e=1 => rejected(stale_epoch)", "renew => ok", "renew => rejected(stale_owner_seq)",
                  "renew => rejected(stale_owner_seq)", "claim c-2 epoch=2 => rejected(claim_conflict)",
                  "rules 1 => rejected(rules_not_forward)")

    def test_a_rejected_record_does_not_raise_owner_seq(self):
        a = self.a
        a.append(a.event("RulesActivated", {"activated": 1}, owner_seq=50))
        a.append(a.event("OwnershipRenewed", {}, owner_seq=2))
        self.ends("rules 1 => rejected(rules_not_forward)", "renew => ok")

    def test_keys(self):
        a = self.a
        t = a.create()
        event = a.event("OwnershipRenewed", {})
        a.append(event, b"#8")
        a.append(event, b"#07")
        a.append({**event, "task_id": t}, b"#7")
        a.append({**a.event("TaskCreated", a.tasks[t].created), "task_id": None}, b"%d" % t)
        a.append(a.event("TaskCreated", a.tasks[t].created, task_id=t + (1 << 12)))
        a.append(a.event("TaskCreated", a.tasks[t].created, task_id=t), b"1")
        self.assertEqual([line.split(" => ")[1] for line in told(a)[-6:]],
                         ["rejected(wrong_partition)", "rejected(wrong_key)", "rejected(wrong_key)", "rejected(wrong_key)",
                          "rejected(wrong_partition)", "rejected(wrong_key)"])

    def test_unknown_rules_stop_the_reader(self):
        a = self.a
        a.control("RulesActivated", activated=2)
        a.create()
        result = check_section(Memory(a.records()), DECODER)
        self.assertEqual((result.stopped_at, result.records), (1, 2))
        self.assertIn("unknown_rules", result.findings.counts)


class Text(unittest.TestCase):
    """The reasons of docs/acceptance.md and state.md."""

    def test_reasons_are_those_of_the_texts(self):
        acceptance = (testkit.REPO / "docs" / "acceptance.md").read_text(encoding="utf-8")
        for reason in REASONS:
            self.assertIn(f"`{reason}`", acceptance)
        state = (testkit.REPO / "schemas" / "state.md").read_text(encoding="utf-8")
        stated = re.search(r"n-th reason of this list: (.*?)\. At most", state, re.S).group(1)
        self.assertEqual(tuple(re.split(r",\s+", stated)), REASONS)
        self.assertEqual(HISTORY_CODE["wrong_key"], 1)

    def test_every_reason_occurs_in_a_history_above(self):
        source = (testkit.REPO / "tests" / "checker" / "test_fold.py").read_text(encoding="utf-8")
        self.assertEqual({reason for reason in REASONS if f"rejected({reason})" in source}, set(REASONS))

    def test_every_kind_occurs_in_the_good_log(self):
        kinds = {entry.event["kind"] for entry in every_kind()[0].entries if entry.event} | {"RulesActivated"}
        self.assertEqual(kinds, set(DECODER.schema["fields"][1]["type"]["symbols"]))


if __name__ == "__main__":
    unittest.main()
