//! A real broker for tests, started through `scripts/kafka.sh` once per test process. A test that
//! gets none fails: it is never skipped.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
#[cfg(feature = "kafka")]
use std::sync::atomic::{AtomicU32, Ordering};
#[cfg(feature = "kafka")]
use std::time::Duration;

#[cfg(feature = "kafka")]
use rdkafka::{
    ClientConfig, TopicPartitionList,
    admin::{AdminClient, AdminOptions},
    client::DefaultClientContext,
};
#[cfg(feature = "kafka")]
use task_events::{Offset, PartitionId};

use crate::fault_proxy::FaultProxy;

/// A running broker. It ends by itself when the test process does.
pub struct Broker {
    /// `host:port` of the ordinary listener.
    pub bootstrap: String,
    /// Proxy in front of the second listener, forwarding; see [`Broker::proxied_bootstrap`].
    pub proxy: FaultProxy,
    /// Process id of the broker, for tests that stop it for a while.
    pub pid: u32,
}

impl Broker {
    /// The broker of this test process; started by the first call. Blocking, about 5 s.
    ///
    /// # Panics
    /// When no broker can be had; the message has what the script said.
    pub fn shared() -> &'static Self {
        static BROKER: OnceLock<Broker> = OnceLock::new();
        BROKER.get_or_init(|| {
            Self::start(&format!("test-{}", std::process::id()))
                .unwrap_or_else(|e| panic!("no Kafka for this test: {e}"))
        })
    }

    /// `host:port` of the proxy; the broker advertises it on this listener, so all traffic stays
    /// on the proxy.
    pub fn proxied_bootstrap(&self) -> String {
        format!("127.0.0.1:{}", self.proxy.port())
    }

    fn start(name: &str) -> Result<Self, String> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/kafka.sh");
        let proxy = FaultProxy::start().map_err(|e| format!("fault proxy: {e}"))?;
        let output = Command::new("bash")
            .arg(&script)
            .args(["start", "--name", name, "--proxy-port", &proxy.port().to_string()])
            .args(["--brief", "--watch-pid", &std::process::id().to_string()])
            .output()
            .map_err(|e| format!("{}: {e}", script.display()))?;
        let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if !output.status.success() {
            return Err(format!("{} failed: {stderr}", script.display()));
        }
        let field = |name: &str| {
            let rest = stdout.split_once(&format!("\"{name}\":"))?.1.trim_start_matches('"');
            rest.split(['"', ',', '}']).next().map(str::to_owned)
        };
        let missing = || format!("{} said {stdout:?}", script.display());
        let upstream: SocketAddr = field("proxy_listener").and_then(|text| text.parse().ok()).ok_or_else(missing)?;
        proxy.forward_to(upstream);
        let bootstrap = field("bootstrap").ok_or_else(missing)?;
        let pid = field("pid").and_then(|text| text.parse().ok()).ok_or_else(missing)?;
        Ok(Self { bootstrap, proxy, pid })
    }
}

#[cfg(feature = "kafka")]
impl Broker {
    /// Settings for a topic of its own, which is not made yet; quick about revocations.
    pub fn config(&self, partitions: u16) -> crate::KafkaConfig {
        static TOPICS: AtomicU32 = AtomicU32::new(0);
        let topic = format!("t{}", TOPICS.fetch_add(1, Ordering::Relaxed));
        let mut config = crate::KafkaConfig::new(&self.bootstrap, topic, partitions);
        config.revoke_deadline = Duration::from_secs(1);
        config
    }

    /// Makes a topic of its own.
    ///
    /// # Panics
    /// When the broker doesn't make it.
    pub async fn topic(&self, partitions: u16) -> crate::KafkaConfig {
        let config = self.config(partitions);
        let made = crate::ensure_topic(&config, &crate::TopicSpec::single_node()).await;
        made.unwrap_or_else(|e| panic!("no topic for this test: {e}"));
        config
    }

    /// Deletes the records of a partition below this offset, as retention does.
    ///
    /// # Panics
    /// The broker doesn't.
    pub async fn forget(&self, topic: &str, partition: PartitionId, below: Offset) {
        let admin: AdminClient<DefaultClientContext> =
            ClientConfig::new().set("bootstrap.servers", &self.bootstrap).create().expect("a client");
        let mut list = TopicPartitionList::new();
        let below = rdkafka::Offset::Offset(i64::try_from(below.0).expect("an offset of Kafka"));
        list.add_partition_offset(topic, i32::from(partition.0), below).expect("a partition");
        let deleted = admin.delete_records(&list, &AdminOptions::new()).await;
        deleted.unwrap_or_else(|e| panic!("records of partition {partition} are not deleted: {e}"));
    }
}
