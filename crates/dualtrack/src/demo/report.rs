//! What the demo tells in the end, and whether it holds: the account of the log, the rows, the
//! outputs, the handlers' ledger, and the word of the independent checker.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, ensure};
use task_events::TaskState;

use super::account::Account;
use super::compare::compare;
use super::files::Places;
use super::show::{Summary, history, judge, table};
use super::{DemoArgs, PARTITIONS, ledger, rows};

/// Says what happened and what of it is right.
///
/// # Errors
/// Something is missing or wrong.
pub async fn report(args: &DemoArgs, places: &Places, inputs: &[PathBuf], account: &Account) -> anyhow::Result<()> {
    let rows = rows::compare(args, places, account).await?;
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
