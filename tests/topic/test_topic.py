"""The topic as standard tools see it: Confluent's consumer with the coordinator's schema registry, and kcat.

Run by scripts/topic-tools.sh, which starts a real Kafka and names it in KAFKA_BOOTSTRAP.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

TOPIC = "task-execution-events"
PARTITIONS = 3
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
BOOTSTRAP = os.environ["KAFKA_BOOTSTRAP"]
PROGRAM = os.environ["DUALTRACK_BIN"]
# Settings of the surroundings are none of the server's.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("DUALTRACK_")}
TRACEPARENT = re.compile(rb"00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]")


class Server:
    """`dualtrack dev` on the topic, with its own folder and port."""

    def __init__(self, folder: Path) -> None:
        args = [PROGRAM, "dev", "--listen", "127.0.0.1:0", "--data", str(folder / "data"), "--partitions", str(PARTITIONS)]
        settings = {"log.kind": "kafka", "log.bootstrap": BOOTSTRAP, "log.topic": TOPIC}
        for key, value in settings.items():
            args += ["--set", f"{key}={value}"]
        self.errors = open(folder / "server.stderr", "w", encoding="utf-8")
        self.process = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=self.errors, text=True, env=ENVIRONMENT)
        self.url = ""
        assert self.process.stdout
        for line in self.process.stdout:
            found = re.search(r"http://[0-9.:]+", line)
            self.url = self.url or (found.group() if found else "")
            if line.strip() == "ready":
                return
        raise AssertionError((folder / "server.stderr").read_text(encoding="utf-8"))

    def run(self, *args: str) -> str:
        command = [PROGRAM, *args, "--url", self.url]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=ENVIRONMENT).stdout

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=30)
        self.errors.close()
        if self.process.stdout:
            self.process.stdout.close()


class Topic(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory()
        folder = Path(cls.folder.name)
        cls.server = Server(folder)
        tasks = "".join(json.dumps({"payload": n, "trace_id": TRACE}) + "\n" for n in range(7))
        (folder / "tasks.jsonl").write_text(tasks, encoding="utf-8")
        cls.server.run("task", "create", "--type", "t", "--from", str(folder / "tasks.jsonl"))
        # Ends by itself when nothing is left to do.
        worker = [PROGRAM, "worker", "exec", "--url", cls.server.url, "--type", "t", "--until-idle", "2s", "--", "cat"]
        subprocess.run(worker, check=True, capture_output=True, env=ENVIRONMENT)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.server.stop()
        cls.folder.cleanup()

    def consumer(self) -> tuple[Consumer, dict[int, int]]:
        """Assigned to every partition from its start, and where each ends now."""
        consumer = Consumer({"bootstrap.servers": BOOTSTRAP, "group.id": "reader", "enable.auto.commit": False})
        self.addCleanup(consumer.close)
        places = [TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)]
        consumer.assign(places)
        return consumer, {p.partition: consumer.get_watermark_offsets(p, timeout=30)[1] for p in places}

    def test_a_stock_deserializer_reads_every_record(self) -> None:
        read = AvroDeserializer(SchemaRegistryClient({"url": self.server.url}))
        consumer, ends = self.consumer()
        at, kinds, traced = dict.fromkeys(ends, 0), [], 0
        while any(at[partition] < end for partition, end in ends.items()):
            message = consumer.poll(30)
            self.assertIsNotNone(message, f"nothing comes; read up to {at} of {ends}")
            self.assertIsNone(message.error())
            event = read(message.value(), SerializationContext(TOPIC, MessageField.VALUE))
            headers = dict(message.headers())
            self.assertEqual(headers["kind"].decode(), event["kind"])
            self.assertEqual(headers["rule-version"].decode(), str(event["rule_version"]))
            if event["task_id"] is not None:
                self.assertEqual(message.key().decode(), str(event["task_id"]))
                self.assertRegex(headers["traceparent"], TRACEPARENT)
                self.assertEqual(headers["traceparent"].decode().split("-")[1], event["trace_id"])
                traced += 1
            at[message.partition()] = message.offset() + 1
            kinds.append(event["kind"])
        for kind, count in {"TaskCreated": 7, "TaskAssigned": 7, "TaskStarted": 7, "TaskCompleted": 7}.items():
            self.assertEqual(kinds.count(kind), count, kinds)
        self.assertGreaterEqual(kinds.count("OwnershipClaimed"), PARTITIONS)
        self.assertGreaterEqual(traced, 28)

    def test_kcat_reads_keys_headers_and_offsets(self) -> None:
        kcat = shutil.which("kcat")
        self.assertIsNotNone(kcat, "kcat is missing: scripts/topic-tools.sh installs it")
        form = "%p %o %k %h\n"
        said = subprocess.run([str(kcat), "-C", "-q", "-b", BOOTSTRAP, "-t", TOPIC, "-o", "beginning", "-e", "-f", form],
                              check=True, capture_output=True, text=True, timeout=60).stdout
        created = [line for line in said.splitlines() if "kind=TaskCreated" in line]
        self.assertEqual(len(created), 7, said)
        for line in created:
            partition, _, key, headers = line.split(" ", 3)
            # The partition stands in the id.
            self.assertEqual((int(key) >> 12) & 1023, int(partition))
            self.assertRegex(headers, rf"traceparent=00-{TRACE}-[0-9a-f]{{16}}-01")
            self.assertRegex(headers, "crc32c=[0-9a-f]{8}")


if __name__ == "__main__":
    unittest.main()
