//! Dump files `*.dtlog` (normative: tests/checker/README.md §2): the records of partitions byte for
//! byte, for whoever judges a log without being connected to it.

use std::io::{self, Write};

use task_events::{Offset, PartitionId};

use crate::RawRecord;

/// Writes one partition's section: every record as it was read, in offset order.
///
/// # Errors
/// Whatever the writer answers, and records that are not contiguous from `start`.
pub fn write_dump<'a>(
    out: &mut impl Write,
    partition: PartitionId,
    start: Offset,
    records: impl IntoIterator<Item = &'a RawRecord>,
) -> io::Result<()> {
    out.write_all(b"dualtrack-log 1\n")?;
    out.write_all(&partition.0.to_be_bytes())?;
    out.write_all(&start.0.to_be_bytes())?;
    let mut next = start.0;
    for record in records {
        if record.offset.0 != next {
            let what = format!("offset {} follows {} in partition {partition}", record.offset, next);
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        next += 1;
        write_record(out, record)?;
    }
    out.write_all(b"E")?;
    out.write_all(&next.to_be_bytes())?;
    out.write_all(&(next - start.0).to_be_bytes())
}

fn write_record(out: &mut impl Write, record: &RawRecord) -> io::Result<()> {
    out.write_all(b"R")?;
    out.write_all(&record.offset.0.to_be_bytes())?;
    out.write_all(&record.broker_ms.to_be_bytes())?;
    write_sized(out, record.key.as_deref())?;
    let count = u16::try_from(record.headers.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    out.write_all(&count.to_be_bytes())?;
    for (name, value) in &record.headers {
        let length = u16::try_from(name.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        out.write_all(&length.to_be_bytes())?;
        out.write_all(name.as_bytes())?;
        write_sized(out, Some(value))?;
    }
    write_sized(out, record.value.as_deref())
}

fn write_sized(out: &mut impl Write, bytes: Option<&[u8]>) -> io::Result<()> {
    match bytes {
        None => out.write_all(&(-1i32).to_be_bytes()),
        Some(bytes) => {
            let length = i32::try_from(bytes.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
            out.write_all(&length.to_be_bytes())?;
            out.write_all(bytes)
        }
    }
}
