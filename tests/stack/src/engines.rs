//! Real Kafka, Cassandra and Redis for a test process, by `scripts/stack.sh`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use event_log::fault_proxy::{Fault, FaultProxy};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use stack_control::Engines;

/// One of the three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// The event track.
    Kafka,
    /// The snapshot track.
    Cassandra,
    /// Locks.
    Redis,
}

impl Engine {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Kafka, Self::Cassandra, Self::Redis];

    const fn name(self) -> &'static str {
        match self {
            Self::Kafka => "kafka",
            Self::Cassandra => "cassandra",
            Self::Redis => "redis",
        }
    }

    // Where it takes connections through its proxy: what its script calls that.
    const fn proxied_field(self) -> &'static str {
        match self {
            Self::Kafka => "proxy_listener",
            Self::Cassandra => "address",
            Self::Redis => "url",
        }
    }
}

/// A proxy before each engine, which forwards until a test says otherwise.
struct Proxies {
    kafka: FaultProxy,
    cassandra: FaultProxy,
    redis: FaultProxy,
}

impl Proxies {
    fn start() -> Self {
        let proxy = || FaultProxy::start().expect("a proxy");
        Self { kafka: proxy(), cassandra: proxy(), redis: proxy() }
    }

    const fn before(&self, engine: Engine) -> &FaultProxy {
        match engine {
            Engine::Kafka => &self.kafka,
            Engine::Cassandra => &self.cassandra,
            Engine::Redis => &self.redis,
        }
    }
}

/// The engines of a test process. They end by themselves when it does.
pub struct Stack {
    name: String,
    told: Value,
    variables: BTreeMap<String, String>,
    proxies: Proxies,
}

impl Stack {
    /// The ones of this test process; started by the first call. Blocking, about 15 s.
    ///
    /// # Panics
    /// They cannot be had; the message has what the script said.
    pub fn shared() -> &'static Self {
        static STACK: OnceLock<Stack> = OnceLock::new();
        // The one node of Cassandra is killed, and must have what it acknowledged: there are no replicas.
        STACK.get_or_init(|| Self::start(&format!("stack-{}", std::process::id()), &["--durable"]))
    }

    /// Others, with TLS and passwords.
    ///
    /// # Panics
    /// As [`Stack::shared`].
    pub fn secure() -> Self {
        Self::start(&format!("secure-{}", std::process::id()), &["--secure"])
    }

    fn start(name: &str, more: &[&str]) -> Self {
        let own = std::process::id().to_string();
        let proxies = Proxies::start();
        let port = proxies.kafka.port().to_string();
        let mut arguments = vec!["start", "--name", name, "--brief", "--watch-pid", &own, "--proxy-port", &port];
        arguments.extend(more);
        let told = script(&arguments);
        let told = serde_json::from_str(&told).unwrap_or_else(|why| panic!("the script said {told:?}: {why}"));
        let file = root().join(format!(".dev/run/{name}.env"));
        let text = std::fs::read_to_string(&file).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
        // Nobody else needs it, and engines that end by themselves leave it behind.
        let _ = std::fs::remove_file(&file);
        let read = |line: &str| {
            let (name, value) = line.strip_prefix("export ")?.split_once('=')?;
            Some((name.to_owned(), value.trim_matches('\'').to_owned()))
        };
        let stack = Self { name: name.to_owned(), told, variables: text.lines().filter_map(read).collect(), proxies };
        for engine in Engine::ALL {
            let address = stack.told(engine, engine.proxied_field());
            let address = address.trim_start_matches("redis://").parse().expect("an address");
            stack.proxy(engine).forward_to(address);
        }
        stack
    }

    /// Where they are, and how to get in.
    pub fn engines(&self) -> Engines {
        Engines(self.variables.clone())
    }

    /// The same, through the proxies. Without TLS only.
    pub fn proxied_engines(&self) -> Engines {
        let mut variables = self.variables.clone();
        let at = |engine| format!("127.0.0.1:{}", self.proxy(engine).port());
        variables.insert("DUALTRACK_LOG__BOOTSTRAP".to_owned(), at(Engine::Kafka));
        variables.insert("DUALTRACK_STORE__CONTACT_POINTS".to_owned(), at(Engine::Cassandra));
        variables.insert("DUALTRACK_LOCK__URL".to_owned(), format!("redis://{}", at(Engine::Redis)));
        Engines(variables)
    }

    /// The proxy before an engine.
    pub const fn proxy(&self, engine: Engine) -> &FaultProxy {
        self.proxies.before(engine)
    }

    /// What the script said of an engine.
    ///
    /// # Panics
    /// It said nothing of that.
    pub fn told(&self, engine: Engine, key: &str) -> String {
        let value = &self.told[engine.name()][key];
        value.as_str().map_or_else(|| value.to_string(), str::to_owned)
    }

    /// Stops an engine where it stands.
    ///
    /// # Panics
    /// It does not run.
    pub fn freeze(&self, engine: Engine) {
        self.signal(engine, Signal::STOP);
    }

    /// Lets it go on.
    ///
    /// # Panics
    /// It does not run.
    pub fn thaw(&self, engine: Engine) {
        self.signal(engine, Signal::CONT);
    }

    /// Ends it without a warning.
    ///
    /// # Panics
    /// It does not run.
    pub async fn kill(&self, engine: Engine) {
        let pid = self.pid(engine);
        self.signal(engine, Signal::KILL);
        crate::until("it is gone", || async { (!is_alive(pid)).then_some(()) }).await;
    }

    /// Makes good what a test before left behind when it failed: each engine runs, and its proxy forwards.
    /// Blocking.
    ///
    /// # Panics
    /// As [`Stack::restart`].
    pub fn heal(&self) {
        for engine in Engine::ALL {
            self.proxy(engine).set(Fault::None);
            if !is_alive(self.pid(engine)) {
                self.restart(engine);
            }
            self.thaw(engine);
        }
    }

    /// Starts it again on its data and its ports, and waits until it takes requests. Blocking: Kafka
    /// takes about 5 s, Cassandra 15.
    ///
    /// # Panics
    /// What its script said.
    pub fn restart(&self, engine: Engine) {
        let name = format!("{}-{}", self.name, engine.name());
        run(&format!("{}.sh", engine.name()), &["restart", "--name", &name]);
    }

    /// Asks the lock server directly.
    ///
    /// # Panics
    /// It refuses.
    pub fn redis(&self, command: &[&str]) -> String {
        let url = self.told(Engine::Redis, "url");
        let ran = Command::new("redis-cli").args(["-u", &url]).args(command).output().expect("redis-cli runs");
        let said = String::from_utf8_lossy(&ran.stdout).into_owned();
        assert!(ran.status.success() && !said.starts_with("ERR"), "{command:?}: {said}");
        said
    }

    // The process that runs now: another one after a restart.
    fn pid(&self, engine: Engine) -> Pid {
        let file = Path::new(&self.told(engine, "dir")).join("pid");
        let text = std::fs::read_to_string(&file).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
        text.trim().parse().ok().and_then(Pid::from_raw).expect("an engine has an id")
    }

    fn signal(&self, engine: Engine, signal: Signal) {
        kill_process(self.pid(engine), signal).unwrap_or_else(|why| panic!("cannot signal {engine:?}: {why}"));
    }
}

// One that ended and that nobody waited for yet has no command line any more.
fn is_alive(pid: Pid) -> bool {
    let said = std::fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero()));
    said.is_ok_and(|line| !line.is_empty())
}

impl Drop for Stack {
    fn drop(&mut self) {
        script(&["stop", "--name", &self.name]);
    }
}

fn script(arguments: &[&str]) -> String {
    run("stack.sh", arguments)
}

fn run(script: &str, arguments: &[&str]) -> String {
    let script = root().join("scripts").join(script);
    let ran = Command::new("bash").arg(&script).args(arguments).output();
    let ran = ran.unwrap_or_else(|why| panic!("{}: {why}", script.display()));
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{} {} failed: {said}", script.display(), arguments.join(" "));
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().unwrap_or(root)
}
