//! Whether every task that was answered with 201 is there.

use futures::StreamExt as _;
use rest_client::{Client, ClientError};
use task_events::{TaskId, TaskState};

use super::clock::pause;

/// Most tasks that are asked for; of more, evenly spread ones.
const MOST: usize = 100_000;
/// Questions under way at a time.
const READS: usize = 64;
/// A question without an answer is asked again so often, after this pause, ms.
const TRIES: u32 = 50;
const AGAIN_MS: u64 = 200;

/// What was found.
#[derive(Clone, Copy, Debug, Default)]
pub struct Found {
    /// Tasks asked for.
    pub asked: u64,
    /// There, with SUCCESS.
    pub succeeded: u64,
    /// There, in any state.
    pub found: u64,
    /// The server says that there is no such task.
    pub lost: u64,
    /// No answer.
    pub unanswered: u64,
}

enum Outcome {
    There(TaskState),
    Lost,
    Unanswered,
}

/// Asks for every task, or for evenly spread ones of very many.
pub async fn all_there(client: &Client, tasks: &[TaskId]) -> Found {
    let step = tasks.len().div_ceil(MOST).max(1);
    let asked: Vec<TaskId> = tasks.iter().copied().step_by(step).collect();
    let mut found = Found { asked: asked.len() as u64, ..Found::default() };
    let questions = futures::stream::iter(asked.into_iter().map(|task| ask(client, task)));
    let mut answers = questions.buffer_unordered(READS);
    while let Some(outcome) = answers.next().await {
        match outcome {
            Outcome::There(state) => {
                found.found += 1;
                found.succeeded += u64::from(state == TaskState::Success);
            }
            Outcome::Lost => found.lost += 1,
            Outcome::Unanswered => found.unanswered += 1,
        }
    }
    found
}

async fn ask(client: &Client, task: TaskId) -> Outcome {
    let mut outcome = Outcome::Unanswered;
    for _ in 0..TRIES {
        outcome = match client.get(task, None).await {
            Ok(view) => return Outcome::There(view.status),
            // Said once more after a pause: an owner that is not sure does not say so.
            Err(ClientError::Problem(problem)) if [404, 410].contains(&problem.status) => {
                if matches!(outcome, Outcome::Lost) {
                    return Outcome::Lost;
                }
                Outcome::Lost
            }
            Err(_) => Outcome::Unanswered,
        };
        pause(AGAIN_MS).await;
    }
    outcome
}
