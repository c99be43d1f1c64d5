//! Handing the partition over (design.md §4.10, §11).

use std::time::Duration;

use super::settling::Ended;
use super::{Answer, Effect, Now, Owner, Phase, Why};

impl Owner {
    /// Starts handing the partition over.
    pub(super) fn drain(&mut self, now: Now, within: Duration) {
        let within = u64::try_from(within.as_millis()).unwrap_or(u64::MAX);
        let until = now.boot_ms.saturating_add(within);
        self.draining = Some(self.draining.map_or(until, |earlier| earlier.min(until)));
        for poll in std::mem::take(&mut self.polls) {
            self.reply(poll.token, Answer::Unavailable(Why::Draining));
        }
        // The edge asks the next owner for the rest of the time.
        for job in self.awaits.take_all() {
            self.reply(job.token, Answer::Unavailable(Why::Draining));
        }
        for job in std::mem::take(&mut self.parked) {
            self.reply(job.token, Answer::Unavailable(Why::Draining));
        }
        self.owed.hurry(now.boot_ms);
    }

    /// Ends the hand-over when everything is settled, or when its time is up.
    pub(super) fn finish_drain(&mut self, now: Now) {
        let Some(until) = self.draining else { return };
        // With records outstanding a claim under way is what settles them.
        let claiming = matches!(self.phase, Phase::Claiming { retry_ms: None }) && !self.flight.is_empty();
        let settled = self.flight.is_empty() && self.creates.is_empty() && self.owed.is_empty() && !self.rows_writing;
        if self.phase == Phase::Done || self.phase == Phase::Owning && !settled && now.boot_ms < until {
            return;
        }
        if claiming && now.boot_ms < until {
            return;
        }
        if settled && self.phase == Phase::Owning {
            self.hand_over();
        }
        self.phase = Phase::Done;
        self.disown(now, Ended::Unknown, Why::Draining);
        self.out.push(Effect::Drained);
    }
}
