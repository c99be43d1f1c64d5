//! A first look through a whole file before anything is sent: whether all of it can be read, how many
//! lines there are, and which traces tell whether it was sent before.

use std::collections::VecDeque;

use super::outcome::refused;
use super::record::{Broken, Line, Maker, Records, mark};

/// Lines named of those that cannot be sent.
const SHOWN: usize = 20;

/// Traces looked for: so many from the beginning and as many from the end.
const MARKS: usize = 8;

/// What a file holds.
#[derive(Debug, Default)]
pub struct Survey {
    /// Lines that make a task.
    pub tasks: u64,
    /// Lines that cannot be sent.
    pub refused: u64,
    /// The first of them, in words.
    pub shown: Vec<String>,
    /// Traces of marked lines, from both ends.
    pub marks: Vec<String>,
}

/// Looks through it.
///
/// # Errors
/// Where it cannot be read any further.
pub fn survey(records: &mut dyn Records, maker: &mut Maker) -> Result<Survey, Broken> {
    let mut found = Survey::default();
    let mut last = VecDeque::new();
    while let Some(record) = records.next()? {
        let line = maker.make(record);
        match &line.task {
            Ok(task) => {
                found.tasks += 1;
                if let Some(trace) = mark(task) {
                    if found.marks.len() < MARKS {
                        found.marks.push(trace.to_owned());
                    } else {
                        last.push_back(trace.to_owned());
                        if last.len() > MARKS {
                            last.pop_front();
                        }
                    }
                }
            }
            Err(problem) => {
                found.refused += 1;
                if found.shown.len() < SHOWN {
                    found.shown.push(refused(line.line, problem));
                }
            }
        }
    }
    found.marks.extend(last);
    Ok(found)
}

/// The marks of a batch, where there is no file to look through.
pub fn marks(lines: &[Line]) -> Vec<String> {
    let tasks = lines.iter().filter_map(|line| line.task.as_ref().ok());
    tasks.filter_map(|task| mark(task)).take(MARKS).map(str::to_owned).collect()
}
