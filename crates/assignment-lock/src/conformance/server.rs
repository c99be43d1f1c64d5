//! A real Redis for tests, started through `scripts/redis.sh`. A test that gets none fails: it is
//! never skipped.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use redis::{Cmd, Connection, FromRedisValue};

use crate::RedisConfig;

/// A running server. It ends by itself when the test process does.
pub struct RedisServer {
    name: String,
    /// What the script said of it, JSON.
    said: String,
    prefixes: AtomicU32,
}

impl RedisServer {
    /// The server of this test process, started by the first call: for tests that leave others alone,
    /// each below a key prefix of its own. Blocking.
    ///
    /// # Panics
    /// When no server can be had; the message has what the script said.
    pub fn shared() -> &'static Self {
        static SERVER: OnceLock<RedisServer> = OnceLock::new();
        SERVER.get_or_init(|| Self::start(&[]))
    }

    /// A server of its own, for tests that do something to it. Blocking.
    ///
    /// # Panics
    /// As [`RedisServer::shared`].
    pub fn start(options: &[&str]) -> Self {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let process = std::process::id();
        let name = format!("test-redis-{process}-{}", STARTED.fetch_add(1, Ordering::Relaxed));
        let said = script(&name, "start", &[options, &["--watch-pid", &process.to_string()]].concat());
        Self { name, said, prefixes: AtomicU32::new(0) }
    }

    /// A part of what the script said: `url`, `secure_url`, `ca`, `certificate`, `key`, `user`,
    /// `password_file`, `pid`.
    ///
    /// # Panics
    /// When it did not say such a thing.
    pub fn field(&self, name: &str) -> String {
        let found = self.said.split_once(&format!("\"{name}\":")).map(|(_, rest)| rest.trim_start_matches('"'));
        let found = found.and_then(|rest| rest.split(['"', ',', '}']).next());
        found.unwrap_or_else(|| panic!("no {name} in {}", self.said)).to_owned()
    }

    /// `127.0.0.1:PORT`.
    pub fn address(&self) -> String {
        self.field("url").trim_start_matches("redis://").to_owned()
    }

    /// Settings that reach it, below a key prefix that nobody else has.
    pub fn config(&self) -> RedisConfig {
        let mut config = RedisConfig::new(self.field("url"));
        config.key_prefix = format!("p{}:", self.prefixes.fetch_add(1, Ordering::Relaxed));
        config
    }

    /// A connection of the test's own.
    ///
    /// # Panics
    /// When the server does not take it.
    pub fn raw(&self) -> Connection {
        let client = redis::Client::open(self.field("url")).expect("an address");
        client.get_connection().expect("the server takes connections")
    }

    /// One command, as in `redis-cli`.
    ///
    /// # Panics
    /// When it is refused.
    pub fn run<T: FromRedisValue>(&self, words: &str) -> T {
        let mut command = Cmd::new();
        words.split(' ').for_each(|word| {
            command.arg(word);
        });
        command.query(&mut self.raw()).unwrap_or_else(|why| panic!("{words}: {why}"))
    }

    /// Ends it at once, as by a crash.
    ///
    /// # Panics
    /// When there is nothing to end.
    pub fn kill(&self) {
        let status = Command::new("kill").args(["-KILL", &self.field("pid")]).status().expect("kill runs");
        assert!(status.success(), "the server was not there");
        while std::net::TcpStream::connect(self.address()).is_ok() {
            std::thread::yield_now();
        }
    }

    /// Starts it again, on the port it had.
    ///
    /// # Panics
    /// When it does not start.
    pub fn restart(&mut self) {
        self.said = script(&self.name, "restart", &[]);
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        script(&self.name, "stop", &[]);
    }
}

fn script(name: &str, command: &str, options: &[&str]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/redis.sh");
    let output = Command::new("bash").arg(&script).args([command, "--name", name]).args(options).output();
    let output = output.unwrap_or_else(|why| panic!("{}: {why}", script.display()));
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{} {command}: {stderr}", script.display());
    stdout.into_owned()
}
