//! Rules become valid at an offset (design.md §3): the owner appends `RulesActivated`, forward only,
//! and never of rules it does not know itself.

use std::cmp::Ordering;

use task_core::decide::Draft;
use task_events::{Body, RulesActivated, SUPPORTED_RULES};

use super::work::Job;
use super::{Answer, Command, Now, Owner};

impl Owner {
    /// Activates rules in this partition. What is active already is answered like what has become so:
    /// asking again does no harm.
    pub(super) fn activate(&mut self, now: Now, job: Job) {
        let Command::Activate { version } = job.command else { return };
        let active = self.fold.active_rules;
        match version.cmp(&active) {
            Ordering::Equal => self.answer_from_memory(now, job, Answer::RulesActive),
            Ordering::Greater if version <= SUPPORTED_RULES => {
                let body = Body::RulesActivated(RulesActivated { activated: version });
                self.append_for(now, job, vec![Draft::control(body)], Answer::RulesActive);
            }
            Ordering::Greater | Ordering::Less => {
                let refused = Answer::RulesRefused { version, active, known: SUPPORTED_RULES };
                self.answer_from_memory(now, job, refused);
            }
        }
    }
}
