//! Flags and help of `task create --from`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::super::times::duration_ms;

/// What the help of `task create` says beyond its flags.
pub const HELP: &str = "\
Examples:
  dualtrack task create --type word_count --payload '{\"text\":\"to be\"}' --wait
  dualtrack task create --from orders.jsonl --failed-to rejected.jsonl
  dualtrack task create --from orders.csv --type order --payload-columns --output json

A file is JSONL (a create request of the REST API on each line) or CSV with a header. Columns are fields
of a task (task_type, payload as JSON, queue, creator, priority, not_before, deadline, start_to_close_ms,
schedule_to_start_ms, max_retries, business_key, concurrency_key, same_partition_as, trace_id, payload_ref,
payload_hash), label.NAME and payload.NAME. Flags are what a line has unless it says otherwise.
Sending a file again creates nothing twice: repair lines where they stand. Exit codes: dualtrack task --help";

/// Arguments of `--from`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "From a file")]
pub struct ImportArgs {
    /// Create a task for each line of a file; - for standard input
    #[arg(long, value_name = "FILE|-")]
    pub from: Option<PathBuf>,
    /// Form of the file [default: by the end of its name]
    #[arg(long, value_enum, requires = "from")]
    pub format: Option<Format>,
    /// What stands for the file in the keys of its lines [default: its name without folders]
    #[arg(long, value_name = "NAME", requires = "from")]
    pub name: Option<String>,
    /// Delimiter of CSV, one ASCII character [default: that of the header: , ; tab or |]
    #[arg(long, value_name = "CHARACTER", requires = "from", value_parser = delimiter)]
    pub delimiter: Option<u8>,
    /// Encoding, such as gb18030 or utf-16le [default: by the byte order mark, else utf-8]
    #[arg(long, value_name = "NAME", requires = "from")]
    pub encoding: Option<String>,
    /// CSV: columns that are no field of a task become fields of its payload
    #[arg(long, requires = "from")]
    pub payload_columns: bool,
    /// Send the other lines although some cannot be read
    #[arg(long, requires = "from")]
    pub keep_going: bool,
    /// Send it although it was sent so long ago that its lines may become tasks a second time
    #[arg(long, requires = "from")]
    pub again: bool,
    /// Write the lines that were rejected to this new file
    #[arg(long, value_name = "FILE", requires = "from")]
    pub failed_to: Option<PathBuf>,
    /// Batches under way at a time, 1 to 16
    #[arg(long, value_name = "N", requires = "from", allow_negative_numbers = true, default_value = "4", value_parser = clap::value_parser!(u8).range(1..=16))]
    pub parallel: u8,
    /// Give up when no line could be settled for so long
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, requires = "from", default_value = "10m", value_parser = duration_ms)]
    pub patience: u64,
}

/// Form of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// One JSON object a line.
    Jsonl,
    /// Comma-separated values with a header.
    Csv,
}

fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        [one] if one.is_ascii() && !matches!(one, b'"' | b'\r' | b'\n') => Ok(*one),
        _ => Err("one ASCII character, or tab".to_owned()),
    }
}

impl Format {
    /// That of a file with this name.
    pub fn by_name(name: &str) -> Option<Self> {
        match name.rsplit_once('.')?.1.to_ascii_lowercase().as_str() {
            "jsonl" | "ndjson" => Some(Self::Jsonl),
            "csv" | "tsv" => Some(Self::Csv),
            _ => None,
        }
    }
}
