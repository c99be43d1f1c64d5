"""Duties of accepted records, one by one: forged or careless writers whose records the fold accepts."""

import unittest

from testkit.author import Author
from testkit.cases import LogCase
from testkit.tales import check
from checker import ids


class Duties(LogCase):
    """Each test writes a short log and names the codes of its findings and hints."""

    def test_records_before_any_claim(self):
        self.a = Author()
        self.a.create()
        self.assertEqual(check(self.a.records()).rejected, {"stale_epoch": 1})

    def test_control_numbers_and_rule_version(self):
        self.a.append(self.a.event("OwnershipRenewed", {}, run_no=1))
        self.a.append(self.a.event("OwnershipRenewed", {}, rule_version=2))
        self.found("control_numbers", "rule_version")

    def test_trace_id(self):
        self.a.append(self.a.event("OwnershipRenewed", {}, trace_id="0af7651916cd43dd8448eb211c80319c"))
        self.a.append(self.a.event("OwnershipRenewed", {}, trace_id="4bf9"))
        self.found("trace_id")

    def test_claim_with_owner_seq(self):
        self.a.epoch = 2
        self.a.append(self.a.event("OwnershipClaimed", {"url": "", "claim_attempt": 1}, owner_seq=5))
        self.found("claim_owner_seq")

    def test_verdict_with_a_fence(self):
        task = self.running()
        self.a.fail(task)
        self.a.approve(task, partition_epoch=1)
        self.assertEqual(self.found(), {"needless_fence"})

    def test_later_tries_of_a_verdict_have_good_ids(self):
        task = self.running()
        self.a.fail(task)
        self.a.approve(task, tries=17)
        self.found()

    def test_seal_without_size(self):
        self.a.append(self.a.event("LogSealed", {"note": "later"}, service="AUDIT_REPORT", event_id=b"x" * 16))
        self.assertEqual(self.found(), {"seal_note"})

    def test_started_by_another_worker(self):
        task = self.a.create()
        self.a.assign(task)
        self.a.start(task, "w9")
        self.assertEqual(self.found(), {"other_worker"})

    def test_handed_out_inside_the_guard(self):
        task = self.running()
        self.a.lose(task, lease_left=30_000)
        self.a.approve(task, lost=True)
        self.a.plan(task)
        self.a.retry(task)
        self.a.assign(task)
        self.assertEqual(self.found(), {"inside_guard"})

    def test_no_guard_once_the_worker_reported(self):
        task = self.running()
        self.a.lose(task, lease_left=30_000)
        self.a.reject_report(task, self.a.tasks[task].execution, "FAILED", None)
        self.a.approve(task, lost=True)
        self.a.plan(task)
        self.a.retry(task)
        self.a.assign(task)
        self.assertEqual(self.found(), set())

    def test_silence_never_releases_an_optimistic_start(self):
        task = self.a.create()
        self.a.assign(task, optimistic=True)
        self.a.later(10_000)
        self.a.release(task, "NOT_STARTED")
        self.found("released_by_silence")

    def test_not_started_too_early(self):
        task = self.a.create()
        self.a.assign(task)
        self.a.release(task, "NOT_STARTED")
        self.assertEqual(self.found(), {"released_early"})

    def test_rejected_reports(self):
        task = self.running()
        execution = self.a.tasks[task].execution
        self.a.reject_report(task, execution)
        self.a.complete(task)
        self.a.reject_report(task, execution, result="other")
        hints = self.found("good_report_rejected", "rejected_report_twice")
        self.assertEqual(hints, {"result_conflict"})

    def test_a_late_success_counts_a_late_failure_does_not(self):
        task = self.running()
        self.a.lose(task)
        self.a.reject_report(task, self.a.tasks[task].execution, "FAILED", None)
        self.found()
        other = self.running()
        self.a.lose(other)
        self.a.reject_report(other, self.a.tasks[other].execution, "SUCCESS")
        self.found("good_report_rejected")

    def test_summary_too_long(self):
        task = self.running()
        body = {"execution_id": self.a.tasks[task].execution, "category": "TRANSIENT", "summary": "x" * 257}
        self.a.append(self.a.event("TaskFailureAnalysis", body, task_id=task))
        self.found("summary")

    def test_texts_at_their_limit_count_characters_not_bytes(self):
        self.a.fail(self.running(), message="é" * 256)
        self.found()

    def test_annotation_that_contradicts_its_event(self):
        task = self.running()
        body = {"execution_id": self.a.tasks[task].execution, "category": "RESOURCE", "summary": "x"}
        self.a.append(self.a.event("TaskFailureAnalysis", body, task_id=task))
        self.a.fail(task)
        self.found("annotation_content")

    def test_annotations_may_stand_alone(self):
        task = self.running()
        body = {"execution_id": self.a.tasks[task].execution, "category": "RESOURCE", "summary": "x"}
        self.a.append(self.a.event("TaskFailureAnalysis", body, task_id=task))
        self.a.claim("c-2", 120)
        self.a.fail(task)
        self.found()

    def test_no_retry_after_a_loss_in_a_step_that_must_not_run_twice(self):
        task = self.running()
        self.a.lose(task, step_in_progress="pay", idempotent=False)
        self.a.approve(task, lost=True)
        self.found("not_retryable")

    def test_no_retry_after_a_time_limit_in_such_a_step(self):
        task = self.running()
        self.a.later(3_600_000)
        self.a.time_out(task, "START_TO_CLOSE", live=True, step_in_progress="pay", idempotent=False)
        self.a.approve(task)
        self.found("not_retryable")

    def test_a_step_on_record_was_not_cut_off(self):
        task = self.running()
        self.a.step(task, "pay", idempotent=False)
        self.a.lose(task, step_in_progress="pay", idempotent=False)
        self.a.approve(task, lost=True)
        self.found()

    def test_a_step_beyond_a_gap_runs_again_so_its_outcome_matters(self):
        task = self.running()
        self.a.step(task, "pay", index=1, idempotent=False)
        self.a.lose(task, step_in_progress="pay", idempotent=False)
        self.a.approve(task, lost=True)
        self.found("not_retryable")

    def test_a_loss_elsewhere_may_be_retried(self):
        task = self.running()
        self.a.lose(task, step_in_progress="look", idempotent=True)
        self.a.approve(task, lost=True)
        self.found()

    def test_backoff_that_is_not_kept(self):
        task = self.running()
        self.a.fail(task)
        self.a.approve(task, backoff=30_000, not_before=None)
        self.assertEqual(self.found(), {"backoff_unused"})

    def test_timeouts_in_the_wrong_state_or_without_limit(self):
        self.a.time_out(self.running(schedule_to_start=0), "SCHEDULE_TO_START", live=True)
        self.found("timeout_in_state")
        self.a.time_out(self.a.create(), "SCHEDULE_TO_START")
        self.found("timeout_in_state", "timeout_without_limit")

    def test_deadline_once_per_run(self):
        task = self.a.create(deadline=self.a.now)
        self.a.time_out(task, "DEADLINE")
        self.a.approve(task)
        self.a.plan(task)
        self.a.retry(task)
        self.a.time_out(task, "DEADLINE")
        self.found("not_retryable", "timeout_twice")

    def test_loss_before_the_lease_is_over(self):
        task = self.running()
        self.a.lose(task)
        self.a.entries[-1].event["body"]["last_sign_of_life"] = self.a.now - 1_000
        self.assertEqual(self.found(), {"early_loss"})

    def test_overdue(self):
        task = self.a.create()
        self.a.overdue(task, "CREATED", "worker", waited=10_000)
        self.a.overdue(task, "FAILED", "task-engine")
        other = self.running()
        self.a.fail(other)
        self.a.overdue(other, "FAILED", "auto-replay")
        self.assertEqual(self.found("early_overdue", "overdue_state"), {"overdue_pen"})

    def test_five_releases_in_a_row_are_overdue_at_once(self):
        task = self.a.create()
        for _ in range(5):
            self.a.assign(task)
            self.a.release(task)
        self.a.overdue(task, "CREATED", "worker", waited=0)
        self.found()

    def test_a_retry_after_a_timeout_starts_a_new_count_of_releases(self):
        task = self.a.create(schedule_to_start=60_000)
        for _ in range(5):
            self.a.assign(task)
            self.a.release(task)
        self.a.later(60_000)
        self.a.time_out(task, "SCHEDULE_TO_START")
        self.a.approve(task)
        self.a.plan(task)
        self.a.retry(task)
        self.a.overdue(task, "RETRYING", "worker", waited=0)
        self.found("early_overdue")

    def test_complete_logs_leave_nothing_open(self):
        self.a.create()
        self.a.create(not_before=self.a.now + 60_000)
        self.assertEqual(self.found("pen_pending", complete=True), {"pen_pending"})

    def test_three_rejections_in_a_row(self):
        task = self.a.create()
        for _ in range(4):
            self.a.start(task, counts=False, exec_epoch=3)
        codes = [f.code for f in check(self.a.records()).findings.kept]
        self.assertEqual(codes, ["rejected_in_a_row"])

    def test_an_accepted_execution_id_is_that_of_task_and_epoch(self):
        task = self.a.create()
        self.a.assign(task, execution_id=ids.execution_id(task, 2))
        self.found("execution_id")


if __name__ == "__main__":
    unittest.main()
