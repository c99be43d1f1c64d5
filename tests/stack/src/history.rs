//! What clients asked for and were told, from their side: invoked, then ok, fail, or info for what they
//! cannot know. A judge holds it against the log ([`crate::Journal`]).

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;
use rest_client::ClientError;
use rest_contract::Retry;
use task_events::TaskId;

/// What a client knows of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<T> {
    /// Asked, not answered yet.
    Invoked,
    /// Answered: done.
    Ok(T),
    /// Answered: certainly not done; what was said.
    Fail(String),
    /// Not answered, or answered that it is not known: it may be in the log or not.
    Info(String),
}

impl<T> Outcome<T> {
    /// By what a client may do next ([`Retry`] of the contract).
    pub fn of(answer: Result<T, ClientError>) -> Self {
        match answer {
            Ok(done) => Self::Ok(done),
            Err(why) => match why.retry() {
                Retry::Later | Retry::Never => Self::Fail(why.to_string()),
                Retry::AskFirst => Self::Info(why.to_string()),
            },
        }
    }

    /// What comes of asking the same again: what was unknown once stays so until it is answered.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        match (self, next) {
            (_, Self::Ok(done)) => Self::Ok(done),
            (Self::Info(why), Self::Fail(_) | Self::Invoked) => Self::Info(why),
            (_, next) => next,
        }
    }
}

/// Everything that was asked.
#[derive(Debug, Default)]
pub struct History {
    told: Mutex<Told>,
}

/// The same, at one moment.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// Creates, by their number: the label `op` of the task.
    pub creates: BTreeMap<u64, Outcome<TaskId>>,
    /// Creates with a key.
    pub keyed: BTreeSet<u64>,
    /// Cancels that were asked for, and what became of them.
    pub cancels: BTreeMap<TaskId, Outcome<()>>,
    /// Replays that were asked for, and the run that they opened.
    pub replays: BTreeMap<TaskId, Outcome<u32>>,
}

impl Told {
    /// How many creates are ok, fail and info.
    pub fn counts(&self) -> [usize; 3] {
        let count = |is: fn(&Outcome<TaskId>) -> bool| self.creates.values().filter(|outcome| is(outcome)).count();
        [
            count(|outcome| matches!(outcome, Outcome::Ok(_))),
            count(|outcome| matches!(outcome, Outcome::Fail(_))),
            count(|outcome| matches!(outcome, Outcome::Info(_) | Outcome::Invoked)),
        ]
    }
}

impl History {
    /// Numbers of the next operations, which are invoked now.
    pub fn invoke(&self, count: u64, keyed: bool) -> std::ops::Range<u64> {
        let mut told = self.told.lock();
        let first = told.creates.last_key_value().map_or(0, |(number, _)| number + 1);
        for number in first..first + count {
            told.creates.insert(number, Outcome::Invoked);
            if keyed {
                told.keyed.insert(number);
            }
        }
        first..first + count
    }

    /// What became of a create.
    pub fn created(&self, number: u64, outcome: Outcome<TaskId>) {
        let mut told = self.told.lock();
        let before = told.creates.remove(&number).unwrap_or(Outcome::Invoked);
        told.creates.insert(number, before.then(outcome));
    }

    /// A task is to be cancelled; `None` once it is known.
    pub fn cancel(&self, task: TaskId, outcome: Option<Outcome<()>>) {
        self.told.lock().cancels.insert(task, outcome.unwrap_or(Outcome::Invoked));
    }

    /// A task is to be replayed; `None` until it is known what became of it.
    pub fn replay(&self, task: TaskId, outcome: Option<Outcome<u32>>) {
        self.told.lock().replays.insert(task, outcome.unwrap_or(Outcome::Invoked));
    }

    /// All of it, as of now.
    pub fn told(&self) -> Told {
        self.told.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_unknown_once_stays_unknown_until_it_is_answered() {
        let info = || Outcome::<u8>::Info("lost".into());
        let fail = || Outcome::<u8>::Fail("503".into());
        assert_eq!(Outcome::Invoked.then(fail()), fail());
        assert_eq!(fail().then(info()), info());
        assert_eq!(info().then(fail()), info());
        assert_eq!(info().then(Outcome::Ok(1)), Outcome::Ok(1));
    }

    #[test]
    fn numbers_rise_and_keys_are_remembered() {
        let history = History::default();
        assert_eq!((history.invoke(2, true), history.invoke(1, false)), (0..2, 2..3));
        history.created(2, Outcome::Fail("no".into()));
        let told = history.told();
        assert_eq!((told.counts(), told.keyed), ([0, 1, 2], BTreeSet::from([0, 1])));
    }
}
