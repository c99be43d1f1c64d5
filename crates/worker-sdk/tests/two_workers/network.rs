//! Randomness and messages.

use worker_protocol::{Heartbeat, HeartbeatAnswer, Poll, PollAnswer, Report, ReportAnswer};
use worker_sdk::machine::{Input, Output, RequestId};

/// SplitMix64: small, seeded, good enough to be hostile.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        if n == 0 { 0 } else { self.next() % n }
    }

    pub fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    pub fn delay(&mut self, slow_percent: u64, longest: u64) -> u64 {
        let longest = if self.percent(slow_percent) { longest } else { longest.min(20) };
        1 + self.below(longest)
    }
}

#[derive(Clone, Debug)]
pub enum Request {
    Poll(RequestId, Poll),
    Heartbeat(RequestId, Heartbeat),
    Report(RequestId, Report),
}

impl Request {
    pub fn of(output: &Output) -> Option<Self> {
        match output {
            Output::Poll { request, poll } => Some(Self::Poll(*request, poll.clone())),
            Output::Heartbeat { request, heartbeat, .. } => Some(Self::Heartbeat(*request, heartbeat.clone())),
            Output::Report { request, report, .. } => Some(Self::Report(*request, report.clone())),
            Output::Start { .. }
            | Output::Cancel { .. }
            | Output::Stop { .. }
            | Output::Persist { .. }
            | Output::Forget { .. } => None,
        }
    }

    pub fn id(&self) -> RequestId {
        match self {
            Self::Poll(id, _) | Self::Heartbeat(id, _) | Self::Report(id, _) => *id,
        }
    }
}

pub fn poll_answer(request: RequestId, answer: PollAnswer) -> Input {
    Input::PollAnswered { request, answer }
}

pub fn heartbeat_answer(request: RequestId, answer: HeartbeatAnswer) -> Input {
    Input::HeartbeatAnswered { request, answer }
}

pub fn report_answer(request: RequestId, answer: ReportAnswer) -> Input {
    Input::ReportAnswered { request, answer }
}
