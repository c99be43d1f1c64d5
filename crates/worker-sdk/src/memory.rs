//! Memory in use on this machine, for heartbeats.

/// Percent of the machine's memory that is in use; 0 where that cannot be read.
pub(crate) fn used_percent() -> u32 {
    std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| percent(&text)).unwrap_or(0)
}

fn percent(meminfo: &str) -> Option<u32> {
    let field = |name: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()
    };
    let (total, available) = (field("MemTotal:")?, field("MemAvailable:")?);
    let used = total.checked_sub(available)? * 100;
    u32::try_from(used.checked_div(total)?).ok()
}

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn it_reads_what_linux_writes() {
        let text = "MemTotal:       8000 kB\nMemFree:  100 kB\nMemAvailable:   2000 kB\n";
        assert_eq!(percent(text), Some(75));
        assert_eq!(percent("MemTotal: 0 kB\nMemAvailable: 0 kB"), None);
        assert_eq!(percent(""), None);
    }
}
