//! The rules with one of them changed: every cell of the matrix to every other value, every switch
//! off; and writers without one of their duties.

use task_core::{CancelRule, Cell, Column, Rules};
use task_events::Kind;

use crate::config::Duties;

/// One change to the contract.
#[derive(Clone, Debug, PartialEq)]
pub enum Mutant {
    /// A cell of the matrix has another value.
    Cell {
        /// Row.
        kind: Kind,
        /// Column.
        column: Column,
        /// Standard value.
        from: Cell,
        /// Value now.
        to: Cell,
    },
    /// A cancel request means something else for a kind.
    Cancel {
        /// Kind.
        kind: Kind,
        /// Standard rule.
        from: CancelRule,
        /// Rule now.
        to: CancelRule,
    },
    /// A check is left out.
    Switch(&'static str),
    /// A duty of writers is left out; the fold is the standard one.
    Duty(&'static str, Duties),
}

type Off = fn(&mut Rules);

/// Every switch of [`Rules`] by name, with how to turn it off.
pub const SWITCHES: [(&str, Off); 12] = [
    ("fence", |r| r.fence = false),
    ("claim_order", |r| r.claim_order = false),
    ("owner_seq", |r| r.owner_seq = false),
    ("sequence", |r| r.sequence = false),
    ("run", |r| r.run = false),
    ("exec_epoch", |r| r.exec_epoch = false),
    ("execution_id", |r| r.execution_id = false),
    ("cancel", |r| r.cancel = false),
    ("counters", |r| r.counters = false),
    ("id_order", |r| r.id_order = false),
    ("carried", |r| r.carried = false),
    ("key", |r| r.key = false),
];

// A new switch is a build error here until it has its line above.
const _: fn(Rules) = |rules| {
    let Rules {
        matrix: _,
        fence: _,
        claim_order: _,
        owner_seq: _,
        sequence: _,
        run: _,
        exec_epoch: _,
        execution_id: _,
        cancel: _,
        cancel_by_kind: _,
        counters: _,
        id_order: _,
        carried: _,
        key: _,
    } = rules;
};

/// Every mutant, in the order of the table.
pub fn all() -> Vec<Mutant> {
    let mut out: Vec<_> = SWITCHES.iter().map(|(name, _)| Mutant::Switch(name)).collect();
    out.extend(Duties::without_one().into_iter().map(|(name, duties)| Mutant::Duty(name, duties)));
    for &kind in Kind::ALL {
        let from = crate::STANDARD.cancel_by_kind[kind as usize];
        for to in [CancelRule::Either, CancelRule::Without, CancelRule::With] {
            if to != from {
                out.push(Mutant::Cancel { kind, from, to });
            }
        }
    }
    for &kind in Kind::ALL {
        for column in Column::ALL {
            let from = crate::STANDARD.matrix.cell(kind, column);
            for to in [Cell::No, Cell::Yes, Cell::Late] {
                if to != from {
                    out.push(Mutant::Cell { kind, column, from, to });
                }
            }
        }
    }
    out
}

impl Mutant {
    /// The rules of this mutant, from these.
    pub fn change(&self, mut rules: Rules) -> Rules {
        match self {
            Self::Cell { kind, column, to, .. } => rules.matrix = rules.matrix.with(*kind, *column, *to),
            Self::Cancel { kind, to, .. } => rules.cancel_by_kind[*kind as usize] = *to,
            Self::Switch(name) => without(&mut rules, name),
            Self::Duty(..) => {}
        }
        rules
    }

    /// The duties its writers keep.
    pub fn duties(&self) -> Duties {
        if let Self::Duty(_, duties) = self { *duties } else { Duties::ALL }
    }

    /// How the table names it.
    pub fn name(&self) -> String {
        match self {
            Self::Cell { kind, column, from, to } => {
                format!("{kind} × {}: {} → {}", column.as_str(), cell_name(*from), cell_name(*to))
            }
            Self::Cancel { kind, from, to } => {
                format!("{kind} and a cancel request: {} → {}", cancel_name(*from), cancel_name(*to))
            }
            Self::Switch(name) => format!("without `{name}`"),
            Self::Duty(name, _) => format!("writers without `{name}`"),
        }
    }
}

/// Turns one switch off.
pub fn without(rules: &mut Rules, name: &str) {
    if let Some((_, off)) = SWITCHES.iter().find(|(n, _)| *n == name) {
        off(rules);
    }
}

/// Leaks rules, as the fold borrows them for ever. A mutant lives as long as the process.
pub fn leak(rules: Rules) -> &'static Rules {
    Box::leak(Box::new(rules))
}

/// A cell's value in words.
pub const fn cell_name(cell: Cell) -> &'static str {
    match cell {
        Cell::No => "no",
        Cell::Yes => "yes",
        Cell::Late => "late",
    }
}

/// A cancel rule in words.
pub const fn cancel_name(rule: CancelRule) -> &'static str {
    match rule {
        CancelRule::Either => "either way",
        CancelRule::Without => "only without",
        CancelRule::With => "only with",
    }
}
