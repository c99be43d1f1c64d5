//! An owner's start: the fold's, and how far the rows of former owners are acknowledged.

use assignment_lock::AssignmentLock;
use event_log::EventLog;
use fold_start::{LoadError, Origin, patient};
use service_kit::Clock;
use snapshot_store::{CheckpointName, SnapshotStore};

use super::Start;
use super::shell::{Ports, Setup};

/// Loads the start of a partition. Waits while the store or the log is away.
pub(super) async fn load_start<L, S, K, C>(
    ports: &Ports<L, S, K, C>,
    setup: &Setup,
) -> Result<(Start, Vec<CheckpointName>), LoadError>
where
    L: EventLog,
    S: SnapshotStore,
    K: AssignmentLock,
    C: Clock,
{
    let acked = patient(&ports.clock, || ports.store.acked(setup.partition)).await?;
    let origin = Origin {
        log: &ports.log,
        store: &ports.store,
        clock: &ports.clock,
        partition: setup.partition,
        rules: setup.fold_rules,
        metrics: &setup.metrics,
    };
    let (loaded, end) = fold_start::load_start(&origin).await?;
    let start = Start { fold: loaded.fold, end, acked, number: setup.number, random: setup.random };
    Ok((start, loaded.published))
}
