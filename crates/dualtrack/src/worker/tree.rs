//! Processes below this one. As a child subreaper it becomes the parent of every descendant whose own
//! parent has ended, so that killing children again and again reaches everything, whatever session or
//! group it put itself into.
//!
//! Only children are signalled by number: the number of a child is not given to another process before
//! its parent has waited for it, and that is this one.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use procfs::process::{Process, all_processes};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, set_child_subreaper, wait, waitpid};

/// From here on orphaned descendants become children of this process.
pub fn adopt_orphans() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Children of this process, ended ones that nobody has waited for included.
pub fn children() -> io::Result<Vec<Pid>> {
    let found = match children_by_thread() {
        Some(found) => found,
        // Kernels without CONFIG_PROC_CHILDREN.
        None => {
            let me = getpid().as_raw_nonzero().get();
            parents()?.into_iter().filter(|(_, (parent, _))| *parent == me).map(|(pid, _)| pid).collect()
        }
    };
    Ok(found.into_iter().filter_map(Pid::from_raw).collect())
}

fn children_by_thread() -> Option<Vec<i32>> {
    let mut found = Vec::new();
    for task in Process::myself().ok()?.tasks().ok()? {
        // A thread that has just ended has no children: they pass to another one.
        let Ok(task) = task else { continue };
        match task.children() {
            Ok(children) => found.extend(children.into_iter().filter_map(|pid| i32::try_from(pid).ok())),
            Err(procfs::ProcError::NotFound(_)) if task_is_there(&task) => return None,
            Err(_) => {}
        }
    }
    Some(found)
}

fn task_is_there(task: &procfs::process::Task) -> bool {
    task.stat().is_ok()
}

// Every process with its parent and its resident pages.
fn parents() -> io::Result<BTreeMap<i32, (i32, u64)>> {
    let all = all_processes().map_err(|why| io::Error::other(why.to_string()))?;
    // Those that end meanwhile are left out.
    let stats = all.filter_map(|process| process.ok()?.stat().ok());
    Ok(stats.map(|stat| (stat.pid, (stat.ppid, stat.rss))).collect())
}

/// Memory of all descendants, bytes: the sum of what is resident of each. Pages that several of them
/// share count for each.
pub fn memory_below() -> io::Result<u64> {
    let all = parents()?;
    let mut below = BTreeSet::from([getpid().as_raw_nonzero().get()]);
    let mut pages = 0u64;
    loop {
        let next: Vec<_> =
            all.iter().filter(|(pid, (parent, _))| below.contains(parent) && !below.contains(pid)).collect();
        if next.is_empty() {
            return Ok(pages.saturating_mul(procfs::page_size()));
        }
        for (pid, (_, resident)) in next {
            below.insert(*pid);
            pages = pages.saturating_add(*resident);
        }
    }
}

/// Ends a child without a warning. One that has ended already is none the worse for it.
pub fn kill(child: Pid) {
    let _ = kill_process(child, Signal::KILL);
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Status {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
}

/// Waits for a child if it has ended, and so frees its number.
pub fn reap(child: Pid) -> Option<Status> {
    // An error says that there is nothing left to wait for.
    waitpid(Some(child), WaitOptions::NOHANG).ok()?.and_then(|(_, status)| how(status))
}

/// Waits for any child that has ended.
pub fn reap_any() -> Option<(Pid, Status)> {
    let (child, status) = wait(WaitOptions::NOHANG).ok()??;
    Some((child, how(status)?))
}

fn how(status: WaitStatus) -> Option<Status> {
    let exited = status.exit_status().map(Status::Exited);
    exited.or_else(|| status.terminating_signal().map(Status::Signalled))
}
