//! `dualtrack task list` and `dualtrack review list`: pages of tasks, newest first.

use clap::Args;
use rest_client::contract::{ListOrder, MAX_PAGE, PageEnd, TaskItem, TasksQuery};
use service_kit::{Clock as _, SystemClock};
use task_events::{TaskState, Text};

use super::failure::note;
use super::listing::{Column, Listing, Shown};
use super::screen::Screen;
use super::show::colour;
use super::times::{Moment, shown};
use super::{Common, Failure, Output, print_line, unwritten};

/// Tasks asked for at a time with `--all`.
const PAGE: u32 = 500;

/// Pause before a page is asked for again that led no further, ms.
const STANDS_MS: u64 = 50;

/// Which tasks.
#[derive(Clone, Debug, Args)]
pub struct ListArgs {
    #[command(flatten)]
    filter: Filter,
    /// In any of these states, such as FAILED,LOST
    #[arg(long = "state", value_name = "STATE", value_delimiter = ',', value_parser = state)]
    states: Vec<TaskState>,
    /// Last run by this worker
    #[arg(long)]
    worker: Option<Text>,
    /// The time in its id, within a second of its creation, is this one or later: -DURATION (-1h), Unix ms, or
    /// 2026-11-30T08:00:00Z
    #[arg(long, value_name = "TIME", value_parser = Moment::parse, allow_hyphen_values = true)]
    from: Option<Moment>,
    /// The time in its id is before this one: as --from
    #[arg(long, value_name = "TIME", value_parser = Moment::parse, allow_hyphen_values = true)]
    to: Option<Moment>,
    /// With this label; more than once
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<(Text, Text)>,
}

/// What both lists can be asked.
#[derive(Clone, Debug, Args)]
pub struct Filter {
    /// Of this type
    #[arg(long = "type", value_name = "TYPE")]
    task_type: Option<Text>,
    /// In this queue
    #[arg(long)]
    queue: Option<Text>,
    /// Created by this client
    #[arg(long)]
    creator: Option<Text>,
    /// Whose last failure has this code
    #[arg(long)]
    code: Option<Text>,
    /// The oldest first
    #[arg(long)]
    oldest: bool,
    /// Most tasks of the page, 1 to 1000
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_PAGE)))]
    limit: Option<u32>,
    /// Go on where a page ended
    #[arg(long)]
    cursor: Option<String>,
    /// Page after page, to the end; as JSON one task a line
    #[arg(long)]
    all: bool,
}

/// `KEY=VALUE`.
pub fn label(text: &str) -> Result<(Text, Text), String> {
    let (key, value) = text.split_once('=').ok_or("a label is KEY=VALUE")?;
    Ok((key.into(), value.into()))
}

fn state(text: &str) -> Result<TaskState, String> {
    let known = TaskState::ALL.iter().copied().find(|state| state.as_str().eq_ignore_ascii_case(text));
    known.ok_or_else(|| {
        let all: Vec<_> = TaskState::ALL.iter().map(|state| state.as_str()).collect();
        format!("there is no such state; there are {}", all.join(", "))
    })
}

impl Filter {
    fn query(&self) -> TasksQuery {
        TasksQuery {
            task_type: self.task_type.clone(),
            queue: self.queue.clone(),
            creator: self.creator.clone(),
            code: self.code.clone(),
            order: if self.oldest { ListOrder::Oldest } else { ListOrder::Newest },
            limit: self.limit.or(self.all.then_some(PAGE)),
            cursor: self.cursor.clone(),
            ..TasksQuery::default()
        }
    }
}

/// Lists tasks.
pub async fn tasks(args: ListArgs, common: &Common) -> Result<(), Failure> {
    let now = SystemClock.wall_ms();
    let query = TasksQuery {
        states: args.states,
        worker: args.worker,
        from: args.from.map(|at| at.unix_ms(now)),
        to: args.to.map(|at| at.unix_ms(now)),
        labels: args.labels.into_iter().collect(),
        ..args.filter.query()
    };
    let client = common.client()?;
    let mut pages = Pages::new(common, query, args.filter.all);
    while let Some(query) = pages.next.take() {
        let page = client.tasks(&query).await.map_err(|error| Failure::call(error, ""))?;
        if pages.show(&page, &page.tasks, |item| item, &page.page, query)?.is_break() {
            break;
        }
        pages.wait().await;
    }
    Ok(())
}

/// Lists tasks that wait for somebody's decision.
pub async fn review(filter: Filter, common: &Common) -> Result<(), Failure> {
    let client = common.client()?;
    let mut pages = Pages::new(common, filter.query(), filter.all);
    while let Some(query) = pages.next.take() {
        let page = client.review(&query).await.map_err(|error| Failure::call(error, ""))?;
        if pages.show(&page, &page.items, |item| &item.task, &page.page, query)?.is_break() {
            break;
        }
        pages.wait().await;
    }
    Ok(())
}

struct Pages<'a> {
    common: &'a Common,
    next: Option<TasksQuery>,
    all: bool,
    shown: u64,
    /// The last page led no further.
    stands: bool,
}

impl<'a> Pages<'a> {
    const fn new(common: &'a Common, query: TasksQuery, all: bool) -> Self {
        Self { common, next: Some(query), all, shown: 0, stands: false }
    }

    // A page that leads no further waits for a task that is being created; it need not be asked for at once.
    async fn wait(&self) {
        if self.stands && self.next.is_some() {
            SystemClock.sleep_until(SystemClock.boot_ms().saturating_add(STANDS_MS)).await;
        }
    }

    // Shows a page and decides whether another one is asked for; a reader that went away ends it well.
    fn show<T: serde::Serialize>(
        &mut self,
        page: &impl serde::Serialize,
        items: &[T],
        task: impl Fn(&T) -> &TaskItem,
        end: &PageEnd,
        query: TasksQuery,
    ) -> Result<std::ops::ControlFlow<()>, Failure> {
        self.shown += items.len() as u64;
        let written = match (self.common.output, self.all) {
            (Output::Json, false) => self.common.print(page, |_, _| String::new()).map(|()| Ok(())),
            (Output::Json, true) => lines(items),
            (Output::Table, _) if items.is_empty() => Ok(Ok(())),
            (Output::Table, _) => Ok(print_line(&table(items.iter().map(task), &Screen::here()))),
        }?;
        if let Err(why) = written {
            unwritten(why)?;
            return Ok(std::ops::ControlFlow::Break(()));
        }
        if !end.unanswered.is_empty() {
            let partitions: Vec<_> = end.unanswered.iter().map(ToString::to_string).collect();
            note(&format!(
                "open tasks of these partitions are missing, which did not answer: {}",
                partitions.join(", ")
            ));
        }
        self.stands = end.next_cursor == query.cursor;
        match (&end.next_cursor, self.all) {
            (Some(cursor), true) => self.next = Some(TasksQuery { cursor: Some(cursor.clone()), ..query }),
            (Some(cursor), false) if self.common.output == Output::Table => {
                let way = if query.order == ListOrder::Oldest { "up to" } else { "back to" };
                let far = end.looked_to.map(|at| format!(", {way} {}", shown(at))).unwrap_or_default();
                note(&format!("{} tasks looked at{far}; more with --cursor {cursor}", end.looked_at));
            }
            (None, _) if self.shown == 0 && self.common.output == Output::Table => note("no tasks"),
            (Some(_) | None, _) => {}
        }
        Ok(std::ops::ControlFlow::Continue(()))
    }
}

fn lines<T: serde::Serialize>(items: &[T]) -> Result<std::io::Result<()>, Failure> {
    for item in items {
        let line = serde_json::to_string(item).map_err(|why| Failure::Local(why.to_string()))?;
        if let Err(gone) = print_line(&line) {
            return Ok(Err(gone));
        }
    }
    Ok(Ok(()))
}

/// Tasks as a list.
pub fn table<'a>(tasks: impl Iterator<Item = &'a TaskItem>, screen: &Screen) -> String {
    let mut list = Listing::new(&[
        Column::new("task", 0),
        Column::new("status", 0),
        Column::text("type", 1, 8),
        Column::text("queue", 4, 8),
        Column::new("created", 2),
        Column::new("ended", 6),
        Column::text("worker", 5, 8),
        Column::text("creator", 7, 8),
        Column::text("error", 3, 12),
    ]);
    for task in tasks {
        let error = match (&task.error_code, &task.error_summary) {
            (Some(code), Some(summary)) => format!("{code}: {summary}"),
            (Some(code), None) => code.to_string(),
            (None, summary) => summary.as_ref().map(ToString::to_string).unwrap_or_default(),
        };
        list.row([
            task.task_id.to_string().into(),
            Shown::coloured(task.status.as_str(), colour(task.status)),
            task.task_type.as_str().into(),
            Shown::new(if task.queue == task.task_type { "" } else { task.queue.as_str() }),
            shown(task.created_at).into(),
            task.completed_at.map(shown).unwrap_or_default().into(),
            task.worker_id.as_deref().unwrap_or_default().into(),
            Shown::new(if task.creator == "default" { "" } else { task.creator.as_str() }),
            error.into(),
        ]);
    }
    list.show(screen)
}
