//! What became of a line, as it is told.

use rest_client::contract::{ItemOutcome, Problem};
use serde::Serialize;
use serde_json::Value;

/// What became of a line.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// A new task.
    Created(String),
    /// The task that an earlier sending of the same line made.
    Duplicate(String),
    /// Nothing was made of it, and nothing will be.
    Rejected(Box<Problem>),
    /// It may have become a task: sending the file again tells.
    Unknown(String),
    /// Certainly no task yet: sending the file again makes it one.
    NotSent(String),
}

/// A line and what became of it.
#[derive(Clone, Debug)]
pub struct Settled {
    /// Physical line, from 1.
    pub line: u64,
    /// Its text, for a file of rejected ones.
    pub text: Vec<u8>,
    /// What became of it.
    pub outcome: Outcome,
}

/// How many of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// New tasks.
    pub created: u64,
    /// Tasks that were there before.
    pub duplicate: u64,
    /// Nothing was made of them.
    pub rejected: u64,
    /// Not known.
    pub unknown: u64,
    /// Not sent, or certainly not taken.
    pub not_sent: u64,
}

#[derive(Serialize)]
struct Said<'a> {
    line: u64,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
}

impl Outcome {
    /// Its name, as the server has it for items of a batch.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Created(_) => "created",
            Self::Duplicate(_) => "duplicate",
            Self::Rejected(_) => "rejected",
            Self::Unknown(_) => "unknown",
            Self::NotSent(_) => "not_sent",
        }
    }

    /// That of an item of a batch, where the answer is final; a task without its id would be none.
    pub fn of(outcome: ItemOutcome, task_id: Option<&str>, problem: Option<&Problem>) -> Option<Self> {
        match (outcome, task_id, problem) {
            (ItemOutcome::Created, Some(id), _) => Some(Self::Created(id.to_owned())),
            (ItemOutcome::Duplicate, Some(id), _) => Some(Self::Duplicate(id.to_owned())),
            (ItemOutcome::Rejected, _, Some(problem)) => Some(Self::Rejected(Box::new(problem.clone()))),
            (ItemOutcome::Created | ItemOutcome::Duplicate, None, _) | (ItemOutcome::Rejected, _, None) => None,
            (ItemOutcome::Unknown, _, _) => None,
        }
    }
}

impl Settled {
    /// As a line of JSON.
    pub fn json(&self) -> String {
        let mut said = Said {
            line: self.line,
            outcome: self.outcome.name(),
            task_id: None,
            code: None,
            field: None,
            value: None,
            limit: None,
            detail: None,
        };
        match &self.outcome {
            Outcome::Created(id) | Outcome::Duplicate(id) => said.task_id = Some(id),
            Outcome::Unknown(why) | Outcome::NotSent(why) => said.detail = Some(why),
            Outcome::Rejected(problem) => {
                said.task_id = problem.facts.get("task_id").and_then(Value::as_str);
                said.code = Some(problem.code.as_str());
                (said.field, said.value, said.limit) =
                    (problem.field.as_deref(), problem.value.as_ref(), problem.limit.as_ref());
                said.detail = Some(&problem.detail);
            }
        }
        // Texts and numbers: nothing in it can fail to be written.
        serde_json::to_string(&said).unwrap_or_default()
    }

    /// For people; nothing for a line that went well.
    pub fn words(&self) -> Option<String> {
        let line = self.line;
        match &self.outcome {
            Outcome::Created(_) | Outcome::Duplicate(_) => None,
            Outcome::Rejected(problem) => Some(refused(line, problem)),
            Outcome::Unknown(why) => Some(format!("line {line}: unknown: {why}")),
            Outcome::NotSent(why) => Some(format!("line {line}: not sent: {why}")),
        }
    }
}

/// A line that is refused, in words.
pub fn refused(line: u64, problem: &Problem) -> String {
    format!("line {line}: rejected ({}): {}", problem.code, problem.detail)
}

impl Totals {
    /// Counts one.
    pub const fn count(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Created(_) => self.created += 1,
            Outcome::Duplicate(_) => self.duplicate += 1,
            Outcome::Rejected(_) => self.rejected += 1,
            Outcome::Unknown(_) => self.unknown += 1,
            Outcome::NotSent(_) => self.not_sent += 1,
        }
    }

    /// Lines whose outcome is final.
    pub const fn settled(&self) -> u64 {
        self.created + self.duplicate + self.rejected
    }

    /// For people.
    pub fn words(&self) -> String {
        let Self { created, duplicate, rejected, unknown, not_sent } = *self;
        let all = [
            (created, "created"),
            (duplicate, "duplicate (there before)"),
            (rejected, "rejected"),
            (unknown, "unknown"),
            (not_sent, "not sent"),
        ];
        let parts: Vec<_> = (0..)
            .zip(all)
            .filter(|(i, (n, _))| *i == 0 || *n > 0)
            .map(|(_, (n, what))| format!("{n} {what}"))
            .collect();
        parts.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use rest_client::contract::Code;

    use super::*;

    #[test]
    fn lines_say_what_became_of_them() {
        let settled = |outcome| Settled { line: 7, text: Vec::new(), outcome };
        assert_eq!(settled(Outcome::Created("42".into())).json(), r#"{"line":7,"outcome":"created","task_id":"42"}"#);
        let problem = Problem::new(Code::InvalidField, "/priority is 12").field("/priority").value(12).limit("0 to 9");
        let rejected = settled(Outcome::Rejected(Box::new(problem)));
        assert_eq!(
            rejected.json(),
            r#"{"line":7,"outcome":"rejected","code":"invalid_field","field":"/priority","value":12,"limit":"0 to 9","detail":"/priority is 12"}"#
        );
        assert_eq!(rejected.words().as_deref(), Some("line 7: rejected (invalid_field): /priority is 12"));
        let mut totals = Totals::default();
        totals.count(&rejected.outcome);
        totals.count(&Outcome::NotSent("x".into()));
        assert_eq!((totals.settled(), totals.words().as_str()), (1, "0 created, 1 rejected, 1 not sent"));
    }
}
