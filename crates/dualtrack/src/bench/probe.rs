//! What a process looks like from outside: `/metrics`, and `/proc`.

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use serde::Serialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Clock ticks of a second in /proc (USER_HZ, 100 wherever Linux runs today).
const TICKS_PER_SECOND: f64 = 100.0;

/// Numbers of a server, all partitions together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scrape {
    /// Open tasks.
    pub open: u64,
    /// Records folded.
    pub applied: u64,
}

/// Reads `/metrics`.
///
/// # Errors
/// The server does not answer, or not with 200.
pub async fn scrape(address: &str) -> anyhow::Result<Scrape> {
    let mut stream = TcpStream::connect(address).await.context("cannot reach /metrics")?;
    let request = format!("GET /metrics HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.context("cannot ask /metrics")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.context("cannot read /metrics")?;
    ensure!(answer.starts_with("HTTP/1.1 200"), "/metrics answered {:?}", answer.lines().next().unwrap_or_default());
    Ok(Scrape {
        open: sum(&answer, "dualtrack_partition_open_tasks{"),
        applied: sum(&answer, "dualtrack_partition_applied_offset{service=\"coordinator\","),
    })
}

fn sum(text: &str, name: &str) -> u64 {
    let values = text.lines().filter(|line| line.starts_with(name)).filter_map(|line| line.rsplit_once(' '));
    values.filter_map(|(_, value)| value.parse::<u64>().ok()).sum()
}

/// Resident memory of a process, MB (10^6 bytes).
///
/// # Errors
/// It is gone.
pub fn rss_mb(id: u32) -> anyhow::Result<f64> {
    let text = std::fs::read_to_string(format!("/proc/{id}/status")).context("the process is gone")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS in /proc")?;
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse().context("VmRSS is no number")?;
    Ok(kib * 1024.0 / 1e6)
}

/// CPU seconds that the threads of some processes have used, by what a thread is called.
pub fn cpu_seconds(ids: &[u32]) -> BTreeMap<String, f64> {
    let mut used = BTreeMap::new();
    for id in ids {
        let Ok(threads) = std::fs::read_dir(format!("/proc/{id}/task")) else { continue };
        for thread in threads.flatten() {
            // A thread that ended meanwhile is not counted.
            let Ok(text) = std::fs::read_to_string(thread.path().join("stat")) else { continue };
            if let Some((name, ticks)) = name_and_ticks(&text) {
                *used.entry(name).or_default() += ticks / TICKS_PER_SECOND;
            }
        }
    }
    used
}

/// The process that listens on each port, of those whose descriptors may be read.
///
/// # Errors
/// /proc cannot be read.
pub fn listeners(ports: &[(&str, u16)]) -> anyhow::Result<BTreeMap<String, u32>> {
    let entries = procfs::net::tcp()?.into_iter().chain(procfs::net::tcp6().unwrap_or_default());
    let listening = entries.filter(|entry| entry.state == procfs::net::TcpState::Listen);
    let inodes: BTreeMap<u64, &str> = listening
        .filter_map(|entry| {
            let (name, _) = ports.iter().find(|(_, port)| *port == entry.local_address.port())?;
            Some((entry.inode, *name))
        })
        .collect();
    let mut found = BTreeMap::new();
    for process in procfs::process::all_processes()?.flatten() {
        // Another one's, or gone meanwhile.
        let Ok(descriptors) = process.fd() else { continue };
        for descriptor in descriptors.flatten() {
            if let procfs::process::FDTarget::Socket(inode) = descriptor.target
                && let Some(name) = inodes.get(&inode)
            {
                found.insert((*name).to_owned(), process.pid.unsigned_abs());
            }
        }
    }
    Ok(found)
}

// `pid (name) state …`: utime and stime are the 12th and 13th field behind the name.
fn name_and_ticks(stat: &str) -> Option<(String, f64)> {
    let (head, rest) = stat.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at)?.parse::<f64>().ok();
    Some((name.to_owned(), ticks(11)? + ticks(12)?))
}

/// Where figures are taken.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// Processor.
    pub cpu: String,
    /// Cores this process may use.
    pub cores: usize,
    /// Memory, GB.
    pub memory_gb: f64,
    /// Kernel.
    pub kernel: String,
    /// Runnable threads in the minute before, on average: who else is at work.
    pub load_before: f64,
}

/// This machine.
pub fn machine() -> Machine {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let of = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).and_then(|line| line.split_once(':'));
        line.map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
    };
    let kib: f64 = of(&read("/proc/meminfo"), "MemTotal").trim_end_matches("kB").trim().parse().unwrap_or(0.0);
    Machine {
        cpu: of(&read("/proc/cpuinfo"), "model name"),
        cores: std::thread::available_parallelism().map_or(0, std::num::NonZero::get),
        memory_gb: (kib * 1024.0 / 1e8).round() / 10.0,
        kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        load_before: read("/proc/loadavg").split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threads_name_may_hold_anything() {
        let line = "7 (a) b) S 1 7 7 0 -1 64 0 0 0 0 120 30 0 0 20 0 9 0 1 2 3";
        assert_eq!(name_and_ticks(line), Some(("a) b".to_owned(), 150.0)));
        assert_eq!(name_and_ticks("7"), None);
    }

    #[test]
    fn partitions_are_added_up() {
        let text = "# TYPE x gauge\nx{partition=\"0\"} 3\nx{partition=\"1\"} 4\ny{partition=\"1\"} 9\n";
        assert_eq!(sum(text, "x{"), 7);
    }

    #[test]
    fn who_listens_is_found() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = socket.local_addr().expect("an address").port();
        let found = listeners(&[("me", port), ("nobody", 1)]).expect("/proc");
        assert_eq!(found, BTreeMap::from([("me".to_owned(), std::process::id())]));
    }

    #[test]
    fn this_process_can_be_looked_at() {
        let id = std::process::id();
        assert!(rss_mb(id).expect("memory") > 1.0);
        assert!(!cpu_seconds(&[id]).is_empty());
        assert!(machine().cores > 0);
    }
}
