//! Why a mutant that survives is the same contract: read off what the survey saw, never asserted.

use std::collections::BTreeSet;

use task_core::{Cell, Column, Reason};
use task_events::Kind;

use crate::mutants::{Mutant, cell_name};
use crate::table::Line;

/// Kinds none of whose cells and cancel rules is ever asked for, whatever else is changed.
pub fn idle_kinds(lines: &[Line]) -> BTreeSet<Kind> {
    let busy = |line: &&Line| !line.is_quiet() || !line.seen.masks.is_empty() || line.seen.masked_by_all;
    let busy: BTreeSet<Kind> = lines.iter().filter(busy).filter_map(kind_of).collect();
    // A kind that needs an open task and never met one would look idle too.
    let met = |kind: &Kind| lines.iter().any(|l| kind_of(l) == Some(*kind) && l.seen.met.0 > 0);
    Kind::ALL.iter().copied().filter(|k| !busy.contains(k) && met(k)).collect()
}

/// The kind a mutant is about.
pub fn kind_of(line: &Line) -> Option<Kind> {
    match line.mutant {
        Mutant::Cell { kind, .. } | Mutant::Cancel { kind, .. } => Some(kind),
        Mutant::Switch(_) | Mutant::Duty(..) => None,
    }
}

/// The reason, or `None` when what was seen does not tell: then the mutant is a gap.
pub fn why(line: &Line) -> Option<String> {
    let seen = &line.seen;
    let records = seen.met.0 + seen.met.1;
    if !line.is_quiet() || records == 0 {
        return None;
    }
    if !seen.masks.is_empty() {
        let masks: Vec<_> = seen.masks.iter().map(|m| format!("`{m}`")).collect();
        return Some(format!("{} stands before it: with both changed, other records are accepted", masks.join(", ")));
    }
    match &line.mutant {
        Mutant::Cell { column, from, to, .. } => cell(line, *column, *from, *to),
        Mutant::Cancel { .. } if seen.open == 0 => {
            Some("accepted only for a task that is not open, and that has no cancel request".into())
        }
        Mutant::Cancel { .. } | Mutant::Switch(_) | Mutant::Duty(..) => None,
    }
}

fn cell(line: &Line, column: Column, from: Cell, to: Cell) -> Option<String> {
    let seen = &line.seen;
    let early = seen.reasons.iter().all(|r| *r < Reason::NotAllowed) && seen.reasons.contains(&Reason::UnknownTask);
    if column == Column::Unknown && seen.met.0 == 0 && early {
        return Some("`unknown_task` stands before it: the matrix is asked about open tasks only".into());
    }
    if column == Column::Unknown && from != Cell::No && to != Cell::No {
        return Some("a task that is not open has no late attempt: whatever is not `no` reads as `yes`".into());
    }
    let same_as_late = match seen.lost {
        (true, false) => Cell::No,
        (false, true) => Cell::Yes,
        _ => return None,
    };
    let two = [from, to];
    let always = if same_as_late == Cell::No { "never" } else { "always" };
    (two.contains(&Cell::Late) && two.contains(&same_as_late)).then(|| {
        let (state, name) = (column.as_str(), cell_name(same_as_late));
        format!("in {state} the last attempt is {always} one that was lost, so `late` and `{name}` say the same")
    })
}
