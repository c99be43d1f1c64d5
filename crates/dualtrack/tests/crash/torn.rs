//! What a sudden end of the machine leaves at the end of the newest log file: the beginning of a write
//! that was under way, or one of its sectors missing. Nothing that was acknowledged is touched: the
//! bytes come after the last whole entry.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::Random;

/// Of an entry, before its body (crates/event-log/src/embedded/format.rs).
const HEADER: usize = 40;
const SECTOR: usize = 512;

fn newest_segment(data: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(data.join("log/segments")).ok()?;
    let files = entries.map(|entry| entry.expect("an entry").path());
    files.filter(|file| file.extension().is_some_and(|e| e == "seg")).max()
}

fn u32_at(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize
}

/// Tears the log's tail; `false` if there is none yet, or the kill tore it already.
pub fn tear(data: &Path, random: &mut Random) -> bool {
    let Some(path) = newest_segment(data) else { return false };
    let bytes = std::fs::read(&path).expect("readable");
    if bytes.len() < 64 || bytes.len() < u32_at(&bytes, 12) {
        return false;
    }
    let mut end = u32_at(&bytes, 12);
    while bytes.len() >= end + HEADER {
        end += HEADER + u32_at(&bytes, end + 4) + 1;
    }
    if end != bytes.len() {
        return false;
    }
    let entry = entry(&bytes, end, random);
    let torn = match random.below(3) {
        // It ends in its header, in its body, or before its last byte.
        0 => entry[..1 + random.below(HEADER as u64 - 1) as usize].to_vec(),
        1 => entry[..HEADER + random.below((entry.len() - HEADER) as u64) as usize].to_vec(),
        // All of it is there but one sector.
        _ => {
            let first = (end + HEADER).next_multiple_of(SECTOR) - end;
            let mut entry = entry;
            entry[first..first + SECTOR].fill(0);
            entry
        }
    };
    let mut file = std::fs::OpenOptions::new().append(true).open(&path).expect("writable");
    file.write_all(&torn).expect("written");
    true
}

/// A whole entry as it would stand at this position: a record of partition 0.
fn entry(segment: &[u8], position: usize, random: &mut Random) -> Vec<u8> {
    let body: Vec<u8> = (0..4 * SECTOR).map(|_| 1 + random.below(255) as u8).collect();
    let mut entry = vec![0xd7, 0xe1, 1, 3];
    entry.extend((body.len() as u32).to_le_bytes());
    // Partition, headers, offset, broker time, length of the key.
    entry.extend([0; 2]);
    entry.extend([0; 2]);
    entry.extend(u64::from(u32::MAX).to_le_bytes());
    entry.extend(1_700_000_000_000u64.to_le_bytes());
    entry.extend(8u32.to_le_bytes());
    entry.extend(crc32c::crc32c(&body).to_le_bytes());
    // Log id and number of the segment, these fields, the position.
    let salt = crc32c::crc32c_append(crc32c::crc32c(&segment[16..32]), &segment[32..40]);
    let crc = crc32c::crc32c_append(crc32c::crc32c_append(salt, &entry), &(position as u64).to_le_bytes());
    entry.extend(crc.to_le_bytes());
    entry.extend(body);
    entry.push(0x5a);
    entry
}
