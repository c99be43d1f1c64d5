"""A client that a stock generator made of the committed document, against a real `dualtrack dev`."""

import json
import unittest
import urllib.request
from pathlib import Path

from dualtrack_client import Client
from dualtrack_client.api.operation import list_queues, pause_queue, resume_queue
from dualtrack_client.api.server import get_readiness
from dualtrack_client.api.tasks import (
    cancel_task,
    create_task,
    create_tasks,
    explain_task,
    get_business_key,
    get_task,
    get_task_events,
    get_task_result,
    list_tasks,
    replay_task,
)
from dualtrack_client.api.workers import poll_work, register_worker, report_result, send_heartbeat
from dualtrack_client.models import (
    CancelRequest,
    Code,
    CreateBatch,
    CreateRequest,
    CreateRequestLabels,
    HeartbeatRequest,
    ItemOutcome,
    Outcome,
    PollRequest,
    Problem,
    Register,
    ReplayRequest,
    ResultRequest,
    SendHeartbeatStatus,
    TaskState,
    TaskView,
    Verdict,
)

from server import Server

DOCUMENT = Path(__file__).resolve().parents[2] / "schemas/openapi/dualtrack.json"


class GeneratedClient(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.stop)
        cls.client = Client(base_url=cls.server.url, httpx_args={"trust_env": False})

    def create(self, **fields):
        body = CreateRequest(**{"task_type": "greet", "payload": {"name": "Ada"}, **fields})
        answer = create_task.sync_detailed(client=self.client, body=body)
        self.assertEqual(answer.status_code, 201, answer.content)
        return answer.parsed.task_id

    def assert_problem(self, answer, code, status):
        self.assertIsInstance(answer.parsed, Problem, answer.content)
        self.assertEqual((answer.parsed.code, answer.parsed.status, answer.status_code), (code, status, status))
        return answer.parsed

    def test_the_served_document_is_the_committed_one(self):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"{self.server.url}/openapi.json") as answer:
            self.assertEqual(answer.read(), DOCUMENT.read_bytes())

    def test_the_server_is_ready(self):
        ready = get_readiness.sync(client=self.client)
        self.assertTrue(ready.ready, ready)

    def test_a_task_is_created_read_and_cancelled(self):
        task = self.create(queue="nobody", business_key="order-1", priority=9)
        view = get_task.sync(task, client=self.client)
        self.assertIsInstance(view, TaskView)
        self.assertEqual((view.task_id, view.status, view.priority, view.max_retries), (task, TaskState.CREATED, 9, 3))
        why = explain_task.sync(task, client=self.client)
        self.assertEqual(why.waits_for, "worker", why)
        found = get_business_key.sync("order-1", client=self.client)
        self.assertEqual([one.task_id for one in found.tasks], [task])
        accepted = cancel_task.sync_detailed(task, client=self.client, body=CancelRequest(actor="ada", reason="twice"))
        self.assertEqual((accepted.status_code, accepted.parsed.task_id), (202, task))
        view = get_task.sync(task, client=self.client, wait="30s")
        self.assertEqual(view.status, TaskState.CANCELLED)
        history = get_task_events.sync(task, client=self.client)
        self.assertEqual([one.event["kind"] for one in history.events][0], "TaskCreated")
        again = cancel_task.sync_detailed(task, client=self.client)
        self.assert_problem(again, Code.TASK_CLOSED, 409)
        replayed = replay_task.sync(task, client=self.client, body=ReplayRequest(run_no=1))
        self.assertEqual(replayed.run_no, 2)

    def test_tasks_are_listed_page_by_page(self):
        labels = CreateRequestLabels.from_dict({"country": "DE", "color": "red"})
        made = [self.create(creator="lister", queue="nobody", labels=labels) for _ in range(5)]
        self.create(creator="lister", queue="nobody")
        asked = {"creator": "lister", "state": "CREATED,RETRYING", "label": ["country=DE", "color=red"], "limit": 2}
        found, more = [], {}
        while True:
            page = list_tasks.sync(client=self.client, **asked, **more)
            found += [item.task_id for item in page.tasks]
            if not page.next_cursor:
                break
            more = {"cursor": page.next_cursor}
        self.assertEqual(sorted(found), sorted(made))
        foreign = list_tasks.sync_detailed(client=self.client, creator="other", **more)
        self.assert_problem(foreign, Code.INVALID_CURSOR, 400)
        beyond = list_tasks.sync_detailed(client=self.client, limit=1001)
        self.assert_problem(beyond, Code.INVALID_FIELD, 422)

    def test_a_queue_is_paused_and_resumed(self):
        paused = pause_queue.sync_detailed("held", client=self.client)
        self.assertEqual(paused.status_code, 200, paused.content)
        self.assertTrue(all(not one.problem for one in paused.parsed.partitions))
        queues = {one.queue: one.paused for one in list_queues.sync(client=self.client).queues}
        self.assertTrue(queues["held"])
        self.assertEqual(resume_queue.sync_detailed("held", client=self.client).status_code, 200)

    def test_a_batch_is_answered_item_by_item(self):
        good = CreateRequest(task_type="greet", queue="nobody", payload=None)
        bad = CreateRequest(task_type="greet", queue="nobody", payload=1, priority=10)
        items = create_tasks.sync(client=self.client, body=CreateBatch(tasks=[good, bad])).items
        self.assertEqual([item.outcome for item in items], [ItemOutcome.CREATED, ItemOutcome.REJECTED])
        self.assertEqual(items[1].problem.field, "/tasks/1/priority")

    def test_a_key_creates_one_task(self):
        body = CreateRequest(task_type="greet", queue="nobody", payload=1)
        first, second = (
            create_task.sync_detailed(client=self.client, body=body, idempotency_key="k1") for _ in range(2)
        )
        self.assertEqual((first.status_code, second.status_code), (201, 200))
        self.assertEqual((first.parsed.task_id, second.parsed.duplicate), (second.parsed.task_id, True))
        body.payload = 2
        other = create_task.sync_detailed(client=self.client, body=body, idempotency_key="k1")
        problem = self.assert_problem(other, Code.IDEMPOTENCY_CONFLICT, 409)
        self.assertEqual(problem.additional_properties["task_id"], first.parsed.task_id)

    def test_problems_are_typed(self):
        unknown = get_task.sync_detailed("9223372036854775807", client=self.client)
        self.assert_problem(unknown, Code.TASK_UNKNOWN, 404)
        body = CreateRequest(task_type="greet", payload=1, priority=10)
        refused = create_task.sync_detailed(client=self.client, body=body)
        problem = self.assert_problem(refused, Code.INVALID_FIELD, 422)
        self.assertEqual((problem.field, problem.value), ("/priority", 10))
        self.assertEqual(json.loads(refused.content)["type"], "/docs/errors/invalid_field")
        wait = get_task.sync_detailed("1", client=self.client, wait="61s")
        self.assert_problem(wait, Code.INVALID_PARAMETER, 400)

    def test_a_worker_runs_a_task(self):
        process = "1764479000123"
        register = Register(worker_id="w1", incarnation=process, handler_version="1", queues=["greet"], slots=64)
        registered = register_worker.sync(client=self.client, body=register)
        self.assertGreater(registered.lease_ms, registered.heartbeat_ms)
        task = self.create()
        # A poll's slots are shared out over all partitions that have waiting tasks, other queues' included.
        poll = PollRequest(incarnation=process, handler_version="1", queues=["greet"], free_slots=64, wait_ms=30_000)
        [given] = poll_work.sync("w1", client=self.client, body=poll).assignments
        self.assertEqual((given.task_id, given.payload), (task, {"name": "Ada"}))
        attempt = {
            "execution_id": given.execution_id,
            "exec_epoch": given.exec_epoch,
            "attempt_token": given.attempt_token,
            "worker_id": "w1",
            "memory_usage_percent": 1,
        }
        beat = HeartbeatRequest(incarnation=process, **attempt)
        started = send_heartbeat.sync(task, client=self.client, body=beat, status=SendHeartbeatStatus.STARTING)
        self.assertEqual(started.answer, Verdict.ACCEPTED)
        greeting = {"greeting": "hello Ada"}
        done = ResultRequest(task_id=task, status=Outcome.SUCCESS, result=greeting, execution_time_ms=1, **attempt)
        for verdict in (Verdict.ACCEPTED, Verdict.DUPLICATE):
            self.assertEqual(report_result.sync(task, client=self.client, body=done).answer, verdict)
        self.assertEqual(get_task.sync(task, client=self.client, wait="30s").status, TaskState.SUCCESS)
        self.assertEqual(get_task_result.sync(task, client=self.client).result, greeting)
        late = send_heartbeat.sync_detailed(task, client=self.client, body=beat, status=SendHeartbeatStatus.RUNNING)
        self.assert_problem(late, Code.FENCED, 409)
