"""Duties about steps, plans and closed tasks: evidence of what is skipped, truth of what is carried."""

import unittest

from testkit.author import digest, skip
from testkit.cases import LogCase
from testkit.tales import check


class Evidence(LogCase):
    """Each test writes a short log and names the codes of its findings and hints."""

    def test_skips(self):
        task = self.running()
        proof = self.a.step(task, "pick")
        self.a.fail(task)
        self.a.approve(task, skips=(skip("pick", proof, rule=""), skip("pack", proof), skip("pick", proof, 99)), notes=False)
        self.found("skip_rule", "skip_unproven", "skip_evidence")

    def test_steps_reported_with_a_failure_are_evidence(self):
        task = self.running()
        self.a.step(task, "pick")
        failure = self.a.fail(task)
        self.a.approve(task, skips=(skip("pick", failure),))
        self.a.plan(task, (skip("pick", failure),), (failure,))
        self.found()

    def test_policy_skip_that_is_not_in_the_verdict(self):
        task = self.running()
        proof = self.a.step(task, "pick")
        self.a.fail(task)
        body = {"skipped": skip("pick", proof)}
        self.a.append(self.a.event("TaskSkippedByPolicy", body, task_id=task, service="TASK_ENGINE"))
        self.a.approve(task)
        self.found("annotation_content")

    def test_resume_index(self):
        task = self.running()
        self.a.fail(task)
        self.a.approve(task)
        self.a.plan(task)
        self.a.entries[-1].event["body"]["resume_index"] = 3
        self.assertEqual(self.found(), {"resume_index"})

    def test_replay_of_a_task_the_log_never_had(self):
        other = self.a.create()
        self.a.tasks[other - 1] = self.a.tasks[other]
        self.a.replay(other - 1)
        self.found("not_closed", "event_sequence", "run_no")

    def test_carried_fields(self):
        for field, value in (("run_no", 2), ("created_at", 1), ("handler_version", "v2"), ("worker_id", "w7"), ("retry_count", 1),
                             ("lost_count", 1), ("result_data_hash", digest("x")), ("execution_id", bytes(16)), ("exec_epoch", 9)):
            with self.subTest(field):
                self.setUp()
                task = self.running()
                self.a.complete(task)
                self.a.review(task, {field: value}, **({"run_no": value} if field == "run_no" else {}))
                codes = {f.code for f in check(self.a.records()).findings.kept if not f.hint}
                self.assertIn(f"carried_{field}", codes)

    def test_carried_history(self):
        task = self.running()
        self.a.complete(task)
        self.a.review(task, {"history": b"\x05\x00"})
        self.assertEqual(self.found(), {"carried_history"})

    def test_step_carried_twice(self):
        task = self.running()
        self.a.step(task, "pick")
        self.a.complete(task)
        self.a.replay(task, carry={"steps": list(self.a.tasks[task].steps.values()) * 2})
        self.found("carried_steps")


if __name__ == "__main__":
    unittest.main()
