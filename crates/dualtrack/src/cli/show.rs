//! Tables for people. Columns stand right whatever script a text is in: widths are display widths,
//! and what would move the cursor is taken out.

use comfy_table::{Cell, Color};
use rest_client::contract::{TaskView, WhyView};
use task_events::TaskState;

use super::screen::{Screen, plain};
use super::times::shown;

/// The colour of a state: red wants somebody's eyes, yellow moves on by itself.
pub const fn colour(state: TaskState) -> Color {
    match state {
        TaskState::Success => Color::Green,
        TaskState::FailedPermanently | TaskState::Failed | TaskState::Lost => Color::Red,
        TaskState::Cancelled => Color::Magenta,
        TaskState::Created
        | TaskState::Assigned
        | TaskState::Executing
        | TaskState::RetryApproved
        | TaskState::ReplayPlanned
        | TaskState::Retrying => Color::Yellow,
    }
}

/// A task.
pub fn task(view: &TaskView, screen: &Screen) -> String {
    let mut table = screen.table();
    let mut row = |name: &str, value: String| {
        table.add_row([Cell::new(name), Cell::new(plain(&value))]);
    };
    row("task", view.task_id.to_string());
    row("type", view.task_type.to_string());
    let mut optional = |name: &str, value: Option<String>| value.into_iter().for_each(|value| row(name, value));
    optional("queue", (view.queue != view.task_type).then(|| view.queue.to_string()));
    optional("creator", (view.creator != "default").then(|| view.creator.to_string()));
    optional("priority", (view.priority != 4).then(|| view.priority.to_string()));
    optional("business key", view.business_key.as_ref().map(ToString::to_string));
    optional("concurrency key", view.concurrency_key.as_ref().map(ToString::to_string));
    let labels: Vec<_> = view.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    optional("labels", (!labels.is_empty()).then(|| labels.join(" ")));
    optional("created", Some(shown(view.created_at)));
    optional("not before", view.not_before.map(shown));
    optional("deadline", view.deadline.map(shown));
    optional("worker", view.worker_id.as_ref().map(|worker| format!("{worker}, attempt {}", view.exec_epoch)));
    optional("assigned", view.assigned_at.map(shown));
    optional("started", view.start_time.map(shown));
    optional("ended", view.end_time.map(shown));
    let counts = view.retry_count > 0 || view.lost_count > 0;
    let text =
        || format!("{} of {} after failures, {} after losses", view.retry_count, view.max_retries, view.lost_count);
    optional("retries", counts.then(text));
    optional("run", (view.run_no > 1).then(|| view.run_no.to_string()));
    let steps: Vec<_> = view.steps.iter().map(|step| step.step.to_string()).collect();
    optional("steps done", (!steps.is_empty()).then(|| steps.join(", ")));
    optional("error", view.error.as_ref().map(|error| format!("{}: {}", error.code, error.message)));
    optional("result hash", view.result_data_hash.clone());
    optional("trace", Some(view.trace_id.to_string()));
    let asked = if view.cancel_requested && !view.status.is_terminal() { "  (cancel requested)" } else { "" };
    table.set_header([Cell::new("status"), screen.coloured(view.status.as_str(), colour(view.status))]);
    let stale = if view.stale { "\nas its row tells, no coordinator owns the task now: it may be further" } else { "" };
    format!("{table}{asked}{stale}")
}

/// The blocking fact.
pub fn why(view: &WhyView, screen: &Screen) -> String {
    let mut table = screen.table();
    table.set_header([Cell::new(view.task_id.to_string()), screen.coloured(view.status.as_str(), colour(view.status))]);
    table.add_row(["why", &plain(&view.text)]);
    table.add_row(["fact", &plain(&view.fact)]);
    table.add_row(["waits for", &plain(&view.waits_for)]);
    if let Some(until) = view.until {
        table.add_row(["until", &shown(until)]);
    }
    if let Some(next) = &view.next {
        table.add_row(["next", &plain(next)]);
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use rest_client::contract::AsOf;
    use task_events::TaskId;
    use unicode_width::UnicodeWidthStr as _;

    use super::*;

    #[test]
    fn columns_stand_right_with_chinese_text_and_nothing_moves_the_cursor() {
        let view = WhyView {
            task_id: TaskId::from_raw(1 << 22).expect("an id"),
            status: TaskState::Created,
            fact: "no_worker".into(),
            text: "队列「订单处理」没有空闲的工作者 \u{1b}[31m\u{7}".into(),
            waits_for: "worker".into(),
            until: Some(0),
            next: None,
            as_of: AsOf { partition: 0, offset: 1 },
        };
        for width in [None, Some(40), Some(80)] {
            let text = why(&view, &Screen { width, colour: false });
            let widths: Vec<usize> = text.lines().map(|line| line.width()).collect();
            assert!(widths.windows(2).all(|w| w[0] == w[1]), "{widths:?}\n{text}");
            assert!(width.is_none_or(|width| widths[0] <= usize::from(width)), "{text}");
            assert!(text.contains("订单处理") && !text.contains('\u{1b}') && !text.contains('\u{7}'), "{text}");
        }
    }
}
