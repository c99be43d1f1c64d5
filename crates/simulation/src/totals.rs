//! What a range of seeds came to: sums, and the proof that every fault and every rejection occurred.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use task_core::Reason;

use crate::faults::{Fault, Tally};
use crate::report::Report;

/// Sums over reports.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Seeds run.
    pub seeds: u64,
    /// Records in their logs.
    pub records: u64,
    /// Tasks born.
    pub tasks: u64,
    /// Take-overs.
    pub takeovers: u64,
    /// Polls of executors.
    pub polls: u64,
    /// Acts of handlers.
    pub acts: u64,
    /// Virtual time, µs.
    pub virtual_us: u64,
    /// Requests of clients: ok, fail, unknown.
    pub ops: [u64; 3],
    /// Faults.
    pub tally: Tally,
    /// Rejected records by reason.
    pub rejected: [u64; Reason::ALL.len()],
    /// Malformed records.
    pub quarantined: u64,
    /// Counters and alarms of all processes.
    pub counters: BTreeMap<&'static str, u64>,
}

impl Totals {
    /// Adds one seed.
    pub fn add(&mut self, report: &Report) {
        self.seeds += 1;
        self.records += report.records;
        self.tasks += report.tasks;
        self.takeovers += report.takeovers;
        self.polls += report.polls;
        self.acts += report.acts;
        self.virtual_us += report.virtual_us;
        self.quarantined += report.quarantined;
        self.ops.iter_mut().zip(report.ops).for_each(|(a, b)| *a += b);
        self.rejected.iter_mut().zip(report.rejected).for_each(|(a, b)| *a += b);
        self.tally.merge(&report.tally);
        for (name, count) in &report.counters {
            *self.counters.entry(name).or_default() += count;
        }
    }

    /// Adds another range.
    pub fn merge(&mut self, other: &Self) {
        self.seeds += other.seeds;
        self.records += other.records;
        self.tasks += other.tasks;
        self.takeovers += other.takeovers;
        self.polls += other.polls;
        self.acts += other.acts;
        self.virtual_us += other.virtual_us;
        self.quarantined += other.quarantined;
        self.ops.iter_mut().zip(other.ops).for_each(|(a, b)| *a += b);
        self.rejected.iter_mut().zip(other.rejected).for_each(|(a, b)| *a += b);
        self.tally.merge(&other.tally);
        for (name, count) in &other.counters {
            *self.counters.entry(name).or_default() += count;
        }
    }

    /// Names of faults and rejections that never occurred.
    pub fn missing(&self) -> Vec<&'static str> {
        let faults = Fault::ALL.iter().filter(|f| self.tally.of(**f) == 0).map(|f| f.as_str());
        let reasons = Reason::ALL.iter().filter(|r| self.rejected[**r as usize] == 0).map(|r| r.as_str());
        faults.chain(reasons).collect()
    }

    /// The sums and the table of counters.
    pub fn to_text(&self) -> String {
        let mut out = format!(
            "seeds {}, records {}, tasks {}, take-overs {}, handler acts {}, virtual hours {}\n",
            self.seeds,
            self.records,
            self.tasks,
            self.takeovers,
            self.acts,
            self.virtual_us / 3_600_000_000
        );
        let [ok, fail, unknown] = self.ops;
        let _ = writeln!(out, "client requests: {ok} ok, {fail} fail, {unknown} unknown\n");
        let mut line = |name: &str, count: u64| {
            let _ = writeln!(out, "{count:>12}  {name}");
        };
        for fault in Fault::ALL {
            line(fault.as_str(), self.tally.of(*fault));
        }
        for reason in Reason::ALL {
            line(&format!("rejected: {reason}"), self.rejected[*reason as usize]);
        }
        line("quarantined", self.quarantined);
        for (name, count) in &self.counters {
            line(name, *count);
        }
        out
    }
}
