//! What happens outside the ports: messages between workers, clients and owners, and the life of
//! processes.

use coordinator::owner::{Answer, Command};
use task_events::{ExecutionId, PartitionId};
use worker_sdk::machine::RequestId;

use crate::audit::{Asked, OpId};
use crate::exec::ProcId;
use crate::faults::Fault;
use crate::hub::{Ev, Shared};

/// Something to do outside the ports.
pub enum Act {
    /// A process starts.
    Start(ProcId),
    /// A frozen process goes on.
    Thaw(ProcId),
    /// A request arrives at a coordinator.
    Request(Box<Request>),
    /// An answer arrives where the request came from.
    Answer(From, Box<Answer>),
    /// A worker starts.
    WorkerStart(usize),
    /// A worker's machine wants to know the time.
    WorkerTick(usize, u64),
    /// A handler of a worker's process does its next thing.
    Handler(usize, u64, ExecutionId),
    /// A client does its next thing.
    Client,
    /// A client gives up waiting.
    GiveUp(OpId),
    /// A fault that comes by time.
    Chaos,
}

/// Who asked, and how to tell the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// A worker's process.
    Worker {
        /// Which.
        worker: usize,
        /// Which start of it.
        life: u64,
        /// Its request.
        request: RequestId,
    },
    /// An upstream client.
    Client(OpId),
}

/// A request on its way to an owner.
pub struct Request {
    /// To which process.
    pub proc: ProcId,
    /// About which partition.
    pub partition: PartitionId,
    /// What.
    pub command: Command,
    /// The same for the auditor.
    pub asked: Asked,
    /// Who.
    pub from: From,
}

impl Shared {
    /// Time a message takes, µs.
    pub fn travel_us(&mut self) -> u64 {
        let typical = if self.strikes(Fault::MessageSlow) { 300_000 } else { 700 };
        self.rng.delay(typical)
    }

    /// Sends a request on its way.
    pub fn request(&mut self, request: Request) {
        if self.strikes(Fault::RequestLost) {
            return;
        }
        let worker = matches!(request.from, From::Worker { .. });
        if worker && self.strikes(Fault::RequestTwice) {
            let copy = Request { command: request.command.clone(), asked: request.asked.clone(), ..request };
            let at = self.now() + self.travel_us() * 3;
            self.at(at, Ev::Act(Act::Request(Box::new(copy))));
        }
        let at = self.now() + self.travel_us();
        self.at(at, Ev::Act(Act::Request(Box::new(request))));
    }

    /// An owner answered what arrived at `since`; the answer goes back.
    pub fn answer(&mut self, since: u64, from: From, asked: &Asked, answer: Answer) {
        let now = self.now();
        self.audit.answered((since, now), asked, &answer);
        if self.strikes(Fault::AnswerLost) {
            return;
        }
        let at = now + self.travel_us();
        self.at(at, Ev::Act(Act::Answer(from, Box::new(answer))));
    }
}
