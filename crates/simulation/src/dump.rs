//! A world's log for the independent checker: what lay in it, byte for byte, and what the
//! production fold said to each record (tests/checker/README.md §2 and §3).

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use event_log::write_dump;
use task_events::Offset;

use crate::audit::Judged;
use crate::world::World;

impl World {
    /// Writes `NAME.dtlog` and `NAME.verdicts.jsonl` into a folder.
    ///
    /// # Errors
    /// Whatever the file system says.
    pub fn dump(&self, folder: &Path, name: &str) -> io::Result<()> {
        std::fs::create_dir_all(folder)?;
        let s = self.hub.lock();
        let (mut log, mut verdicts) = (Vec::new(), String::new());
        for (records, part) in s.topic.partitions.iter().zip(&s.audit.parts) {
            write_dump(&mut log, part.fold.partition, Offset(0), records)?;
            for (raw, judged) in records.iter().zip(&part.judged) {
                let verdict = match judged {
                    Judged::Accepted => "accepted".to_owned(),
                    Judged::Rejected(reason) => format!("rejected:{reason}"),
                    Judged::Quarantined(why) => format!("quarantined:{}", why.as_str()),
                };
                let hash = part.hash_at(Offset(raw.offset.0 + 1)).unwrap_or_default();
                let crc = raw.value_crc32c();
                let _ = writeln!(
                    verdicts,
                    r#"{{"partition":{},"offset":{},"verdict":"{verdict}","state_hash":"{hash:032x}","crc32c":"{crc:08x}"}}"#,
                    raw.partition, raw.offset
                );
            }
        }
        std::fs::write(folder.join(format!("{name}.dtlog")), log)?;
        std::fs::write(folder.join(format!("{name}.verdicts.jsonl")), verdicts)
    }
}
