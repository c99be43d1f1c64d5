//! Workers, queues, acceptance rules.

use rest_contract::{
    ActivateRequest, ControlRequest, DrainView, PartitionAnswers, QueuesView, RulesView, WorkerDetail, WorkersView,
};

use crate::client::{Answer, Client};
use crate::transport::Call;

const WORKERS: &str = "/api/v1/workers";
const QUEUES: &str = "/api/v1/queues";
const RULES: &str = "/api/v1/rules";

impl Client {
    /// Workers that polled lately or hold attempts.
    pub async fn workers(&self) -> Answer<WorkersView> {
        self.call(Call::get(WORKERS, &[]), &[200, 207]).await
    }

    /// One worker and its attempts.
    pub async fn worker(&self, worker: &str) -> Answer<WorkerDetail> {
        self.call(Call::get(WORKERS, &[worker]), &[200, 207]).await
    }

    /// Asks the process of a worker that is there now to finish what it holds and to end.
    pub async fn drain(&self, worker: &str, request: &ControlRequest) -> Answer<DrainView> {
        self.post(WORKERS, &[worker, "drain"], request, None, &[200, 207]).await
    }

    /// Ends a worker's quarantine, and a drain that it has not heard of yet. An answer per partition.
    pub async fn release(&self, worker: &str, request: &ControlRequest) -> Answer<PartitionAnswers> {
        self.post(WORKERS, &[worker, "release"], request, None, &[200, 207]).await
    }

    /// Acceptance rules that are active, and who knows which.
    pub async fn rules(&self) -> Answer<RulesView> {
        self.call(Call::get(RULES, &[]), &[200, 207]).await
    }

    /// Activates rules, for good. An answer per partition; doing it again does no harm.
    pub async fn activate(&self, request: &ActivateRequest) -> Answer<PartitionAnswers> {
        self.post(RULES, &[], request, None, &[200, 207]).await
    }

    /// Queues with what waits in them.
    pub async fn queues(&self) -> Answer<QueuesView> {
        self.call(Call::get(QUEUES, &[]), &[200, 207]).await
    }

    /// Stops handing out a queue's tasks. An answer per partition; doing it again does no harm.
    pub async fn pause(&self, queue: &str, request: &ControlRequest) -> Answer<PartitionAnswers> {
        self.post(QUEUES, &[queue, "pause"], request, None, &[200, 207]).await
    }

    /// Hands a queue's tasks out again. An answer per partition; doing it again does no harm.
    pub async fn resume(&self, queue: &str, request: &ControlRequest) -> Answer<PartitionAnswers> {
        self.post(QUEUES, &[queue, "resume"], request, None, &[200, 207]).await
    }
}
