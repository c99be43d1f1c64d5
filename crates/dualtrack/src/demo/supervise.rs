//! The demo's outer process: starts the server, sees it die by its own SIGKILL, starts it again,
//! and then holds the log, the rows, the outputs and the handlers' ledger against each other.

use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use anyhow::{Context as _, bail, ensure};
use event_log::{EmbeddedConfig, EmbeddedLog, KafkaConfig, KafkaLog, TopicSpec};
use task_events::TaskState;

use super::account::{Account, account};
use super::compare::compare;
use super::rows::{self, Rows};
use super::show::{Summary, history, judge, table};
use super::{DemoArgs, LogKind, PARTITIONS, files, ledger};

/// Marks a work folder as the demo's own.
const MARK: &str = ".dualtrack-demo";

/// Folders and files of one run.
pub struct Places {
    /// Outputs.
    pub out: PathBuf,
    /// Embedded log.
    pub log: PathBuf,
    /// Snapshot rows and checkpoints.
    pub store: PathBuf,
    /// Step outputs and outboxes.
    pub payloads: PathBuf,
    /// What handlers did.
    pub ledger: PathBuf,
    dump: PathBuf,
    verdicts: PathBuf,
}

impl Places {
    /// All below the work folder.
    pub fn below(work: &Path) -> Self {
        Self {
            out: work.join("out"),
            log: work.join("log"),
            store: work.join("store"),
            payloads: work.join("payloads"),
            ledger: work.join("ledger.txt"),
            dump: work.join("log.dtlog"),
            verdicts: work.join("log.verdicts.jsonl"),
        }
    }
}

/// Runs the demo; an error if anything is missing or wrong.
pub async fn supervise(args: &DemoArgs) -> anyhow::Result<()> {
    let places = Places::below(&args.work);
    empty(&args.work)?;
    for folder in [&places.out, &places.payloads] {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    let mut inputs = files::list(&args.dir, &args.work)?;
    if let Some(limit) = args.limit {
        inputs.truncate(limit);
    }
    ensure!(!inputs.is_empty(), "{} holds no files: give --dir a folder with some", args.dir.display());
    let mut say = std::io::stdout();
    writeln!(
        say,
        "{} files below {}: one task each, three steps (hash, count, compress)",
        inputs.len(),
        args.dir.display()
    )?;

    writeln!(say, "first start: it will kill itself half-way, while handlers are inside their second step")?;
    let killed = serve(args, true)?;
    ensure!(killed.signal() == Some(9), "the first process should have died by SIGKILL but ended with {killed}");
    writeln!(
        say,
        "killed by SIGKILL; second start: it reads the log, claims, waits for the dead worker's leases, resumes"
    )?;
    let ended = serve(args, false)?;
    ensure!(ended.success(), "the second process ended with {ended}");

    let account = read_account(args, &places).await?;
    let rows = rows::compare(&places.store, &account).await?;
    report(args, &places, &inputs, &account, &rows)
}

// Only a folder that an earlier demo made is emptied: --work may be mistyped.
fn empty(work: &Path) -> anyhow::Result<()> {
    let mark = work.join(MARK);
    if work.exists() {
        let ours = mark.exists() || std::fs::read_dir(work).is_ok_and(|mut entries| entries.next().is_none());
        ensure!(ours, "{} is not a folder of an earlier demo: give --work another one", work.display());
        std::fs::remove_dir_all(work).with_context(|| format!("cannot empty {}", work.display()))?;
    }
    std::fs::create_dir_all(work).with_context(|| format!("cannot create {}", work.display()))?;
    std::fs::write(&mark, "made by dualtrack demo\n").with_context(|| format!("cannot write {}", mark.display()))
}

fn serve(args: &DemoArgs, kill: bool) -> anyhow::Result<ExitStatus> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut command = Command::new(program);
    command.arg("demo").args(args.forwarded()).arg("--serve");
    if kill {
        command.arg("--kill-half-way");
    }
    command.status().context("cannot start the server process")
}

async fn read_account(args: &DemoArgs, places: &Places) -> anyhow::Result<Account> {
    match args.log {
        LogKind::Embedded => {
            let log = EmbeddedLog::open(EmbeddedConfig::new(&places.log, PARTITIONS))?;
            let account = account(&log, &places.dump, &places.verdicts).await;
            log.close();
            account
        }
        LogKind::Kafka => {
            let log = open_kafka(args, "account").await?;
            let account = account(&log, &places.dump, &places.verdicts).await;
            log.close(std::time::Duration::from_secs(5)).await;
            account
        }
    }
}

/// Opens the topic of the demo, making it if it is not there.
pub async fn open_kafka(args: &DemoArgs, client: &str) -> anyhow::Result<KafkaLog> {
    let Some(bootstrap) = &args.bootstrap else { bail!("--log kafka needs --bootstrap HOST:PORT") };
    let mut config = KafkaConfig::new(bootstrap, &args.topic, PARTITIONS);
    client.clone_into(&mut config.client_id);
    let spec = TopicSpec::single_node();
    event_log::ensure_topic(&config, &spec).await?;
    Ok(KafkaLog::open(config, &spec).await?)
}

fn report(args: &DemoArgs, places: &Places, inputs: &[PathBuf], account: &Account, rows: &Rows) -> anyhow::Result<()> {
    let mut say = std::io::stdout();
    let summary = Summary::of(account);
    writeln!(say, "\n{}\n", table(account, &summary))?;

    let runs = ledger::runs(&places.ledger)?;
    let resumed: Vec<_> = account.tasks.iter().filter(|(_, t)| t.resumed_steps > 0).collect();
    let kept = resumed.iter().filter(|(id, _)| runs.get(&(id.to_string(), "hash".to_owned())) == Some(&1)).count();
    if let Some((id, task)) = resumed.first() {
        writeln!(say, "history of task {id} ({}), resumed:", task.name)?;
        history(&mut say, task)?;
        writeln!(say)?;
    }

    let done = account.tasks.values().filter(|t| t.state == TaskState::Success).count();
    let compared = compare(&args.dir, inputs, &places.out)?;
    let mut all = true;
    let mut check = |good: bool, text: String| {
        all &= good;
        judge(&mut say, good, &text)
    };
    check(
        account.tasks.len() == inputs.len(),
        format!("{} files, {} tasks in the log", inputs.len(), account.tasks.len()),
    )?;
    check(done == inputs.len(), format!("{done} of {} tasks ended in SUCCESS", inputs.len()))?;
    let wrong = compared.wrong.first().map(|w| format!("; first: {w}")).unwrap_or_default();
    check(
        compared.wrong.is_empty() && compared.right == inputs.len(),
        format!("{} outputs unpack to exactly their input, {} do not{wrong}", compared.right, compared.wrong.len()),
    )?;
    check(
        kept > 0 && kept == resumed.len(),
        format!("{} tasks were resumed, {kept} of them ran their first step exactly once", resumed.len()),
    )?;
    let wrong = rows.wrong.as_ref().map(|w| format!("; first that does not: {w}")).unwrap_or_default();
    check(
        rows.right == account.tasks.len() && rows.checkpointed == usize::from(PARTITIONS),
        format!(
            "{} snapshot rows tell the state the log tells{wrong}; {} of {PARTITIONS} partitions have a checkpoint",
            rows.right, rows.checkpointed
        ),
    )?;
    let (content, words) = ask_checker(args, places)?;
    check(content, format!("independent checker: {words}"))?;
    ensure!(all, "the demo found something broken; the log and all files are in {}", args.work.display());
    writeln!(say, "\neverything adds up; log, dump and outputs are in {}", args.work.display())?;
    Ok(())
}

// The checker shares no code with this program: it reads the raw bytes, and what this fold said.
fn ask_checker(args: &DemoArgs, places: &Places) -> anyhow::Result<(bool, String)> {
    let mut command = Command::new("python3");
    command.arg(&args.checker).arg(&places.dump).arg("--compare").arg(&places.verdicts).arg("--complete");
    let output = command.output().context("cannot run python3 for the checker")?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Ok((false, format!("{}\n{text}{errors}", output.status)));
    }
    Ok((true, text.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("content").trim().to_owned()))
}
