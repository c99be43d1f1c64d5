//! The embedded adapter passes the conformance suite.

use event_log::conformance::Harness;
use event_log::{AppendFault, AppendOutcome, EmbeddedConfig, EmbeddedLog, RawRecord};
use task_events::PartitionId;
use tempfile::TempDir;

struct Embedded {
    log: EmbeddedLog,
    _dir: TempDir,
}

impl Harness for Embedded {
    type Log = EmbeddedLog;

    async fn start(partitions: u16) -> Self {
        let dir = tempfile::tempdir().expect("temporary directory");
        let mut config = EmbeddedConfig::new(dir.path(), partitions);
        config.segment_bytes = 256 << 10;
        config.session_timeout = std::time::Duration::from_secs(2);
        config.revoke_deadline = std::time::Duration::from_millis(500);
        Self { log: EmbeddedLog::open(config).expect("log"), _dir: dir }
    }

    fn log(&self) -> EmbeddedLog {
        self.log.clone()
    }

    async fn other(&self) -> EmbeddedLog {
        self.log.clone()
    }

    async fn append_foreign(&self, record: RawRecord) {
        assert_eq!(self.log.faults().append_foreign(&record).await, AppendOutcome::Acknowledged);
    }

    async fn losing_answers(&self) -> EmbeddedLog {
        self.log.faults().next_append(None, AppendFault::UnknownWritten);
        self.log.clone()
    }

    async fn heal(&self) {}

    async fn delete_old(&self, _partition: PartitionId) {
        assert!(self.log.delete_before(i64::MAX).await.expect("retention") > 0);
    }
}

event_log::conformance_suite!(Embedded);
