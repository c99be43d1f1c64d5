//! A real Cassandra for tests, started through `scripts/cassandra.sh`. A test that gets none fails: it
//! is never skipped.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::CassandraConfig;

/// A running node. It ends by itself when the test process does.
pub struct CassandraNode {
    name: String,
    /// What the script said of it, JSON.
    said: String,
    keyspaces: AtomicU32,
}

impl CassandraNode {
    /// The node of this test process, started by the first call: for tests that leave others alone, each
    /// in a keyspace of its own. Blocking, about 15 s.
    ///
    /// # Panics
    /// When no node can be had; the message has what the script said.
    pub fn shared() -> &'static Self {
        static NODE: OnceLock<CassandraNode> = OnceLock::new();
        NODE.get_or_init(|| Self::start(&["--heap", "1536"]))
    }

    /// A node of its own, for tests that do something to it. Blocking.
    ///
    /// # Panics
    /// As [`CassandraNode::shared`].
    pub fn start(options: &[&str]) -> Self {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let process = std::process::id();
        let name = format!("test-cassandra-{process}-{}", STARTED.fetch_add(1, Ordering::Relaxed));
        let said = script(&name, "start", &[options, &["--brief", "--watch-pid", &process.to_string()]].concat());
        Self { name, said, keyspaces: AtomicU32::new(0) }
    }

    /// A part of what the script said: `address`, `local_dc`, `ca`, `certificate`, `key`, `user`,
    /// `password_file`, `pid`.
    ///
    /// # Panics
    /// When it did not say such a thing.
    pub fn field(&self, name: &str) -> String {
        let found = self.said.split_once(&format!("\"{name}\":")).map(|(_, rest)| rest.trim_start_matches('"'));
        let found = found.and_then(|rest| rest.split(['"', ',', '}']).next());
        found.unwrap_or_else(|| panic!("no {name} in {}", self.said)).to_owned()
    }

    /// Settings that reach it, for a keyspace that nobody else has and that is not made yet.
    pub fn config(&self, clock: impl Fn() -> i64 + Send + Sync + 'static) -> CassandraConfig {
        let keyspace = format!("k{}", self.keyspaces.fetch_add(1, Ordering::Relaxed));
        let mut config = CassandraConfig::new([self.field("address")], keyspace, self.field("local_dc"), clock);
        config.replication = 1;
        config
    }

    /// Stops its process, which then takes what is sent and says nothing (`STOP`), lets it go on (`CONT`),
    /// or ends it at once (`KILL`).
    ///
    /// # Panics
    /// When there is no such process.
    pub fn signal(&self, signal: &str) {
        let status =
            Command::new("kill").args([&format!("-{signal}"), &self.field("pid")]).status().expect("kill runs");
        assert!(status.success(), "the node was not there");
    }

    /// Starts it again, on the data and ports it had.
    ///
    /// # Panics
    /// When it does not start.
    pub fn restart(&mut self) {
        self.said = script(&self.name, "restart", &[]);
    }
}

impl Drop for CassandraNode {
    fn drop(&mut self) {
        script(&self.name, "stop", &[]);
    }
}

fn script(name: &str, command: &str, options: &[&str]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/cassandra.sh");
    let output = Command::new("bash").arg(&script).args([command, "--name", name]).args(options).output();
    let output = output.unwrap_or_else(|why| panic!("{}: {why}", script.display()));
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{} {command}: {stderr}", script.display());
    stdout.into_owned()
}
