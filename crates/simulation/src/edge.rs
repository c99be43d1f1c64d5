//! Coordinator processes: the production service and its command surface over simulated ports.

use std::sync::Arc;

use coordinator::owner::{Answer, Command, Freeze, Identity, Ports};
use coordinator::service::Service;
use coordinator::surface::{Placement, Surface};
use service_kit::{Metrics, Shutdown};
use task_events::{PartitionId, TaskId};

use crate::clock::SimClock;
use crate::exec::ProcId;
use crate::hub::Hub;
use crate::plan::Plan;
use crate::ports::lock::SimLock;
use crate::ports::log::SimLog;
use crate::ports::store::SimStore;
use crate::verdicts::{Seeded, gave_up};

/// Ports of a coordinator.
pub type SimPorts = Ports<SimLog, SimStore, SimLock, SimClock>;

/// Runs a coordinator until its process is killed.
pub async fn coordinator(
    (ports, surface): (SimPorts, Surface<SimClock>),
    (identity, random): (Identity, Seeded),
    (plan, metrics): (Arc<Plan>, Metrics),
    (proc, hub): (ProcId, Hub),
) {
    let (watcher, who) = (hub.clone(), identity.instance.clone());
    let name = who.clone();
    let service = Service {
        spans: Default::default(),
        ports,
        cfg: plan.owner.clone(),
        rules: plan.owner_rules,
        fold_rules: plan.fold_rules,
        identity,
        entropy: random,
        metrics,
        freeze: Freeze::watched(move |fold| watcher.lock().audit.shown((proc, &name), fold)),
        surface,
    };
    let ended = service.run(Shutdown::default()).await;
    gave_up(&hub, &who, &format!("{ended:?}"));
}

/// Brings a request to the surface of its process.
pub async fn ask(surface: Surface<SimClock>, partition: PartitionId, command: Command) -> Answer {
    let beside = TaskId::from_parts(1, partition, 0);
    match command {
        Command::Create(create) => {
            let placement = Placement { same_partition_as: beside, ..Placement::default() };
            surface.create(*create, placement).await
        }
        Command::Poll(poll) => Answer::Poll(surface.poll(poll).await),
        Command::Heartbeat(beat) => Answer::Heartbeat(surface.heartbeat(beat).await),
        Command::Report(report) => Answer::Report(surface.report(report).await),
        Command::Cancel { task, .. }
        | Command::Replay { task, .. }
        | Command::Review { task, .. }
        | Command::Get { task }
        | Command::Why { task } => surface.about(task, command).await,
        Command::Await { task, wait_ms } => surface.await_task(task, wait_ms).await,
        Command::Find { .. }
        | Command::Look(_)
        | Command::Release { .. }
        | Command::Activate { .. }
        | Command::Queue { .. } => surface.about(beside.unwrap_or(TaskId::ZERO), command).await,
    }
}
