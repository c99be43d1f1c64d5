//! One figure: what was measured, its target, what stands beside it.

use clap::ValueEnum;
use serde::Serialize;

/// Figures that are taken together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    /// Standard tasks per second, and whether every acknowledged one is there after a kill
    Throughput,
    /// From a create to the first line of its handler
    Dispatch,
    /// From SIGKILL to the first decision
    Recovery,
    /// Resident memory
    Memory,
    /// Records per second of the fold
    Fold,
    /// What slow clients cost others
    Slow,
    /// First pages of lists beside a million open tasks
    Lists,
}

impl Group {
    /// Those that are also taken with separate processes on real engines.
    pub const OF_STACK: [Self; 2] = [Self::Throughput, Self::Dispatch];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Dispatch => "dispatch",
            Self::Recovery => "recovery",
            Self::Memory => "memory",
            Self::Fold => "fold",
            Self::Slow => "slow",
            Self::Lists => "lists",
        }
    }
}

/// What a figure should be (design.md §12).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// This or more.
    AtLeast(f64),
    /// This or less.
    AtMost(f64),
}

/// The baseline of the same run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Beside {
    /// What it is, with its unit.
    pub what: String,
    /// Its value.
    pub value: f64,
    /// The figure in parts of it.
    pub ratio: f64,
}

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Taken with.
    pub group: Group,
    /// What it is.
    pub name: String,
    /// Measured; absent if it is missing.
    pub value: Option<f64>,
    /// Of the value.
    pub unit: &'static str,
    /// What it should be.
    pub target: Option<Target>,
    /// Whether it is.
    pub met: Option<bool>,
    /// Baseline.
    pub beside: Option<Beside>,
    /// Circumstances.
    pub notes: Vec<String>,
    /// Why there is no value.
    pub missing: Option<String>,
    /// Acknowledged tasks that were not found.
    pub lost: u64,
}

impl Figure {
    /// A figure without a target.
    pub fn new(group: Group, name: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self {
            group,
            name: name.into(),
            value: Some(value),
            unit,
            target: None,
            met: None,
            beside: None,
            notes: Vec::new(),
            missing: None,
            lost: 0,
        }
    }

    /// One that could not be taken.
    pub fn missing(group: Group, name: impl Into<String>, why: impl Into<String>) -> Self {
        Self { value: None, missing: Some(why.into()), ..Self::new(group, name, 0.0, "") }
    }

    /// Holds it against a target.
    #[must_use]
    pub fn target(mut self, target: Target) -> Self {
        self.target = Some(target);
        self.met = self.value.map(|value| match target {
            Target::AtLeast(least) => value >= least,
            Target::AtMost(most) => value <= most,
        });
        self
    }

    /// Puts a baseline beside it; `of_it`: the figure in the baseline's unit.
    #[must_use]
    pub fn beside(mut self, what: impl Into<String>, value: f64, of_it: f64) -> Self {
        self.beside = (value > 0.0).then(|| Beside { what: what.into(), value, ratio: of_it / value });
        self
    }

    /// Says something of its circumstances.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_met_or_missed_and_a_missing_figure_is_neither() {
        let figure = |value, target| Figure::new(Group::Slow, "f", value, "ms").target(target).met;
        assert_eq!(figure(2.0, Target::AtMost(2.0)), Some(true));
        assert_eq!(figure(2.1, Target::AtMost(2.0)), Some(false));
        assert_eq!(figure(2.1, Target::AtLeast(2.0)), Some(true));
        assert_eq!(Figure::missing(Group::Slow, "f", "no server").target(Target::AtMost(1.0)).met, None);
    }
}
