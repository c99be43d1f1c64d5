//! A minute of decoder and fold, and that the driver finds what is there to be found.

use std::process::Command;

use fuzz_log::decoder::Decoder;
use fuzz_log::{Limits, Outcomes, Record, Target, run};
use task_core::Reason;
use task_events::Kind;

#[expect(clippy::disallowed_methods, reason = "the person at the terminal says how long")]
fn seconds() -> String {
    std::env::var("DUALTRACK_FUZZ_SECONDS").unwrap_or_else(|_| "60".to_owned())
}

const QUARANTINED: [&str; 19] = [
    "ok",
    "no_value",
    "too_large",
    "crc_missing",
    "crc_mismatch",
    "framing",
    "unknown_schema",
    "kind_mismatch",
    "header_mismatch",
    "datum_truncated",
    "datum_varint",
    "datum_range",
    "datum_length",
    "datum_block",
    "datum_boolean",
    "datum_utf8",
    "datum_index",
    "datum_map_order",
    "datum_trailing",
];

// The binary, since it alone counts allocations. `DUALTRACK_FUZZ_SECONDS` makes it longer.
#[test]
fn decoder_and_fold_stand_a_minute_and_every_outcome_comes_up() {
    let run = Command::new(env!("CARGO_BIN_EXE_fuzz-log")).args(["--seconds", &seconds()]).output().unwrap();
    let out = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{out}{}", String::from_utf8_lossy(&run.stderr));
    let (codec, fold) = out.split_once("fold, seed").unwrap();
    for outcome in QUARANTINED {
        assert!(codec.contains(&format!("  {outcome}\n")), "{outcome} was never reached:\n{out}");
    }
    let verdicts = Kind::ALL.iter().map(|k| k.as_str()).chain(Reason::ALL.iter().map(|r| r.as_str()));
    for outcome in verdicts.chain(["quarantined", "seen", "gap"]) {
        assert!(fold.contains(&format!("  {outcome}\n")), "{outcome} was never reached:\n{out}");
    }
}

struct Faulty {
    decoder: Decoder,
    fault: fn(&Record) -> Result<(), String>,
}

impl Target for Faulty {
    fn corpus(&self) -> Vec<Record> {
        self.decoder.corpus()
    }
    fn read(&mut self, records: &[Record], _: &mut Outcomes) -> Result<(), String> {
        records.iter().try_for_each(self.fault)
    }
}

#[test]
fn a_panic_and_a_complaint_are_found_and_come_again_by_seed_and_round() {
    let panics = |r: &Record| match &r.value {
        None => panic!("a tombstone"),
        Some(_) => Ok(()),
    };
    let complains = |r: &Record| if r.key.is_none() { Err("no key".to_owned()) } else { Ok(()) };
    for (fault, what) in [(panics as fn(&Record) -> _, "panic: a tombstone"), (complains, "no key")] {
        let mut target = Faulty { decoder: Decoder::default(), fault };
        let found = run(&mut target, 7, 0, Limits::seconds(60), None).unwrap_err();
        let again = run(&mut target, 7, found.round, Limits::seconds(0), None).unwrap_err();
        assert_eq!((found.what.as_str(), &found.records), (what, &again.records));
    }
}
