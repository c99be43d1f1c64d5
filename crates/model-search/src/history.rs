//! Plays a written history record by record, as a behaviour test does.

use task_core::Reason;

use crate::lab::{Lab, NONE};
use crate::notation::{Expect, parse, print};
use crate::rec::Rec;
use crate::right::right;
use crate::subject::index_of;
use crate::world::World;

/// Why a history does not play as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It cannot be read.
    Unreadable(String),
    /// A record met another fate than the history says.
    Unexpected {
        /// The history up to that record.
        history: String,
        /// What became of the record.
        got: String,
    },
    /// A law is broken.
    Broken {
        /// The history up to that record.
        history: String,
        /// The law.
        what: String,
    },
}

/// Plays a history from this world on.
pub fn play(lab: &mut Lab, mut world: World, text: &str) -> Result<World, Trouble> {
    let mut played: Vec<&str> = Vec::new();
    for step in text.split('|').map(str::trim).filter(|s| !s.is_empty()) {
        let (fold, audit) = (*lab.fold(world.fold), *lab.audit(world.audit));
        let (rec, expect) = parse(step, &fold, &audit).map_err(Trouble::Unreadable)?;
        played.push(step);
        let record = lab.record_id(&rec.record());
        let landed = lab.land_audited(world.fold, world.audit, record);
        let history = || played.join(" | ");
        if let Some(what) = landed.broken {
            return Err(Trouble::Broken { history: history(), what });
        }
        (world.fold, world.audit) = (landed.landing.fold, landed.audit);
        let task = rec.task.and_then(index_of);
        if let (Some(task), true) = (task, landed.landing.closed != NONE) {
            world.owe(task, landed.landing.closed);
        }
        world.asked +=
            u8::from(rec.kind == task_events::Kind::TaskReplayRequested && landed.landing.rejected.is_none());
        let state = task.and_then(|n| {
            lab.fold(world.fold).core(n).or(lab.audit(world.audit).tasks[n].closed.as_ref()).map(|core| core.state)
        });
        let as_said = match expect {
            Expect::Accepted => landed.landing.rejected.is_none(),
            Expect::State(s) => landed.landing.rejected.is_none() && state == Some(s),
            Expect::Rejected(reason) => landed.landing.rejected == Some(reason),
        };
        if !as_said {
            let got = fate(landed.landing.rejected, state.map(|s| s.to_string()));
            return Err(Trouble::Unexpected { history: history(), got });
        }
    }
    Ok(world)
}

/// One record of a history with what became of it. `base` is what to add to every owner_seq.
pub fn tell(lab: &mut Lab, fold: u32, audit: u32, record: u32, base: u64) -> String {
    let (state, memory) = (*lab.fold(fold), *lab.audit(audit));
    let usual = right(&state, &memory, lab.brief(record).kind, 0).o;
    let mut rec = Rec::of(lab.record(record));
    if rec.o != usual {
        rec.o = rec.o.map(|o| o + base);
    }
    let said = print(&rec, &state, &memory);
    match lab.land(fold, record).rejected {
        Some(reason) => format!("{said} => rejected({reason})"),
        None => said,
    }
}

fn fate(rejected: Option<Reason>, state: Option<String>) -> String {
    rejected.map_or_else(|| state.unwrap_or_else(|| "accepted".into()), |r| format!("rejected({r})"))
}
