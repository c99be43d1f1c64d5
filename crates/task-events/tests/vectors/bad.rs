//! Records that every reader quarantines, each with the one reason that all must name.

use crate::Case;
use crate::good::{completed, created, failed, renewed, sealed, step};
use crate::wire::{Part, Record, join, long, sized, some, text};

const V1: [u8; 5] = [0, 0, 0, 0, 1];

fn none(headers: bool) -> Record {
    let record = renewed().record();
    Record { value: None, headers: if headers { record.headers } else { vec![] }, ..record }
}

/// Reasons outside the datum.
#[rustfmt::skip] // a table: one record a line
pub fn record_cases() -> Vec<Case> {
    let empty = || Record::of("OwnershipRenewed", vec![]);
    let huge = || Record::of("OwnershipRenewed", vec![Part::Bytes(V1.to_vec()), Part::Repeat(0, 2 * 1024 * 1024 - 4)]);
    let good = || renewed().record();
    let crc = || good().headers.into_iter().find(|(n, _)| n == "crc32c").unwrap().1;
    let frame = |bytes: &[u8]| Record::framed("OwnershipRenewed", bytes, &[]);
    let datum = good().bytes().unwrap().split_off(5);
    let wrong_kind = || renewed().set("branch", long(29)).and(&text("note"));

    vec![
        Case::bad("a tombstone", "no_value", none(true)),
        Case::bad("a tombstone without headers", "no_value", none(false)),
        Case::bad("an empty value", "no_value", empty()),
        Case::bad("an empty value without headers", "no_value", Record { headers: vec![], ..empty() }),
        Case::bad("one byte above 2 MiB", "too_large", huge()),
        Case::bad("too large before the checksum is asked for", "too_large", huge().without("crc32c")),
        Case::bad("no checksum", "crc_missing", good().without("crc32c")),
        Case::bad("no headers at all", "crc_missing", Record { headers: vec![], ..good() }),
        Case::bad("the checksum twice, both right", "crc_missing", good().with("crc32c", &crc())),
        Case::bad("the checksum in upper case", "crc_missing", Record::framed("OwnershipRenewed", &V1, b"g").header("crc32c", b"ABCDEF01")),
        Case::bad("a checksum of 7 digits", "crc_missing", good().header("crc32c", &crc()[1..])),
        Case::bad("a checksum of 9 digits", "crc_missing", good().header("crc32c", &join(&[b"0", &crc()]))),
        Case::bad("a checksum with a sign", "crc_missing", good().header("crc32c", b"+1234567")),
        Case::bad("a checksum in binary", "crc_missing", good().header("crc32c", &[1, 2, 3, 4])),
        Case::bad("an empty checksum", "crc_missing", good().header("crc32c", b"")),
        Case::bad("the checksum under a name in capitals", "crc_missing", good().without("crc32c").with("CRC32C", &crc())),
        Case::bad("another checksum", "crc_mismatch", good().header("crc32c", b"00000000")),
        Case::bad("the checksum of the datum without its frame", "crc_mismatch",
            good().header("crc32c", format!("{:08x}", crc32c::crc32c(&datum)).as_bytes())),
        Case::bad("the checksum of the value before one bit flipped", "crc_mismatch", Record { headers: good().headers, ..renewed().set("run_no", long(1)).record() }),
        Case::bad("a wrong checksum before a wrong frame", "crc_mismatch", frame(&[1]).header("crc32c", b"00000000")),
        Case::bad("one zero byte", "framing", frame(&[0])),
        Case::bad("four bytes", "framing", frame(&[0, 0, 0, 0])),
        Case::bad("another magic byte", "framing", Record::framed("OwnershipRenewed", &[1, 0, 0, 0, 1], &datum)),
        Case::bad("Avro single-object encoding", "framing", Record::framed("OwnershipRenewed", &[0xc3, 0x01, 0, 0, 0, 0, 0, 0, 0, 1], &datum)),
        Case::bad("a datum without a frame", "framing", frame(&datum)),
        Case::bad("schema 0", "unknown_schema", Record::framed("OwnershipRenewed", &[0, 0, 0, 0, 0], &datum)),
        Case::bad("schema 2", "unknown_schema", Record::framed("OwnershipRenewed", &[0, 0, 0, 0, 2], &datum)),
        Case::bad("schema 42 and junk", "unknown_schema", frame(&[0, 0, 0, 0, 0x2a, 0xde, 0xad, 0xbe, 0xef])),
        Case::bad("schema 4294967295", "unknown_schema", Record::framed("OwnershipRenewed", &[0, 0xff, 0xff, 0xff, 0xff], &datum)),
        Case::bad("schema 1 in little-endian", "unknown_schema", Record::framed("OwnershipRenewed", &[0, 1, 0, 0, 0], &datum)),
        Case::bad("an unknown schema without a datum", "unknown_schema", frame(&[0, 0, 0, 0, 7])),
        Case::bad("kind and body differ", "kind_mismatch", wrong_kind().record()),
        Case::bad("kind and body differ, the header says the body's", "kind_mismatch", wrong_kind().record().header("kind", b"LogSealed")),
        Case::bad("kind and body differ and no header kind", "kind_mismatch", wrong_kind().record().without("kind")),
        Case::bad("no header kind", "header_mismatch", good().without("kind")),
        Case::bad("the header kind twice", "header_mismatch", good().with("kind", b"OwnershipRenewed")),
        Case::bad("another header kind", "header_mismatch", good().header("kind", b"LogSealed")),
        Case::bad("the header kind in another case", "header_mismatch", good().header("kind", b"ownershiprenewed")),
        Case::bad("the header kind with its namespace", "header_mismatch", good().header("kind", b"io.dualtrack.events.OwnershipRenewed")),
        Case::bad("an empty header kind", "header_mismatch", good().header("kind", b"")),
        Case::bad("no header rule-version", "header_mismatch", good().without("rule-version")),
        Case::bad("the header rule-version twice", "header_mismatch", good().with("rule-version", b"1")),
        Case::bad("another header rule-version", "header_mismatch", good().header("rule-version", b"2")),
        Case::bad("a rule-version with a leading zero", "header_mismatch", good().header("rule-version", b"01")),
        Case::bad("a rule-version with a sign", "header_mismatch", good().header("rule-version", b"+1")),
        Case::bad("a rule-version with a blank", "header_mismatch", good().header("rule-version", b"1 ")),
        Case::bad("an empty rule-version", "header_mismatch", good().header("rule-version", b"")),
        Case::bad("a rule-version beyond 2^32 that is 1 when cut", "header_mismatch", good().header("rule-version", b"4294967297")),
        Case::bad("a rule-version in other digits", "header_mismatch", good().header("rule-version", "١".as_bytes())),
    ]
}

/// Faults of the datum.
#[rustfmt::skip] // a table: one record a line
pub fn datum_cases() -> Vec<Case> {
    let bad = |name, fault: &'static str, draft: crate::wire::Draft| Case::bad(name, fault, draft.record());
    let label = |key: &[u8]| join(&[&sized(key), &text("v")]);
    let labels = |keys: &[&[u8]]| {
        let items: Vec<u8> = keys.iter().flat_map(|k| label(k)).collect();
        created().set("labels", join(&[&long(keys.len() as i64), &items, &long(0)]))
    };
    let steps = |bytes: Vec<u8>| completed().set("steps_done", bytes);
    let note = |bytes: Vec<u8>| sealed("").set("note", bytes);
    let sequence = |bytes: &[u8]| renewed().set("event_sequence", bytes);

    vec![
        bad("a frame without a datum", "datum_truncated", renewed().cut("event_id", &[])),
        bad("cut inside a fixed", "datum_truncated", renewed().cut("event_id", &[0x11; 15])),
        bad("cut inside a varint", "datum_truncated", renewed().cut("event_time", &[0x80, 0x80])),
        bad("cut after nine groups of a varint", "datum_truncated", renewed().cut("event_time", &[0x80; 9])),
        bad("cut before the branch of the body", "datum_truncated", renewed().cut("branch", &[])),
        bad("cut before a boolean", "datum_truncated", created().cut("trace_given", &[])),
        bad("cut before the end of an array", "datum_truncated", completed().cut("steps_done", &join(&[&long(1), &step("s")]))),
        bad("a needless group", "datum_varint", sequence(&[0x80, 0])),
        bad("a needless group after a number", "datum_varint", sequence(&[0x82, 0x80, 0])),
        bad("a needless tenth group", "datum_varint", sequence(&[0x82, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0])),
        bad("a tenth group above bit 63", "datum_varint", renewed().set("event_time", [&[0x80; 9][..], &[2]].concat())),
        bad("eleven groups", "datum_varint", renewed().set("event_time", [&[0x80; 10][..], &[1]].concat())),
        bad("ten groups and the end", "datum_varint", renewed().cut("event_time", &[0xff; 10])),
        bad("a needless group in an index", "datum_varint", renewed().set("kind", [0xb6, 0])),
        bad("a needless group in a branch", "datum_varint", renewed().set("task_id", [0x80, 0])),
        bad("a needless group in a length", "datum_varint", note(vec![0x80, 0])),
        bad("a needless group in a count", "datum_varint", steps(vec![0x80, 0])),
        bad("a needless group at the end of an array", "datum_varint", steps(join(&[&long(1), &step("s"), &[0x80, 0]]))),
        bad("a sequence of -1", "datum_range", sequence(&long(-1))),
        bad("a sequence of 2^32", "datum_range", sequence(&long(1 << 32))),
        bad("a run of 2^32", "datum_range", renewed().set("run_no", long(1 << 32))),
        bad("task 0", "datum_range", renewed().set("task_id", some(long(0)))),
        bad("task -1", "datum_range", renewed().set("task_id", some(long(-1)))),
        bad("an owner_seq of -2^63", "datum_range", renewed().set("owner_seq", some(long(i64::MIN)))),
        bad("an incarnation of -1", "datum_range", renewed().set("incarnation", long(-1))),
        bad("priority 10", "datum_range", created().set("priority", long(10))),
        bad("priority -1", "datum_range", created().set("priority", long(-1))),
        bad("priority 256, which is 0 in a byte", "datum_range", created().set("priority", long(256))),
        bad("a negative duration", "datum_range", created().set("start_to_close_ms", long(-1))),
        bad("a negative duration in an option", "datum_range", created().set("schedule_to_start_ms", some(long(-1)))),
        bad("a string of length -1", "datum_length", note(long(-1))),
        bad("a string of length -2^63", "datum_length", note(long(i64::MIN))),
        bad("a string one byte longer than the datum", "datum_length", note(join(&[&long(4), b"abc"]))),
        bad("a length of 2 GB", "datum_length", note(join(&[&long(i64::from(i32::MAX)), b"abc"]))),
        bad("a length of 2^63 - 1", "datum_length", note(join(&[&long(i64::MAX), b"abc"]))),
        bad("a count of 2 GB", "datum_length", steps(long(i64::from(i32::MAX)))),
        bad("a count of 2^63 - 1", "datum_length", steps(long(i64::MAX))),
        bad("a count above the bytes left", "datum_length", completed().cut("steps_done", &[long(3), vec![0, 0]].concat())),
        bad("a map count above the bytes left", "datum_length", created().set("labels", long(1_000_000))),
        bad("a size-prefixed block", "datum_block", steps(join(&[&long(-1), &long(step("s").len() as i64), &step("s"), &long(0)]))),
        bad("a count of -2^63", "datum_block", steps(long(i64::MIN))),
        bad("a second block", "datum_block", steps(join(&[&long(1), &step("a"), &long(1), &step("b"), &long(0)]))),
        bad("a second block of a lying count", "datum_block", steps(join(&[&long(1), &step("a"), &long(i64::MAX)]))),
        bad("a second block, size-prefixed", "datum_block", steps(join(&[&long(1), &step("a"), &long(-1), &long(1), &step("b"), &long(0)]))),
        bad("a second block of a map", "datum_block", created().set("labels", join(&[&long(1), &label(b"a"), &long(1), &label(b"b"), &long(0)]))),
        bad("a size-prefixed block of a map", "datum_block", created().set("labels", join(&[&long(-1), &long(4), &label(b"a"), &long(0)]))),
        bad("boolean 2", "datum_boolean", created().set("trace_given", [2])),
        bad("boolean ff", "datum_boolean", failed().set("is_idempotent", some(vec![0xff]))),
        bad("a byte that is no UTF-8", "datum_utf8", note(sized(&[0xff]))),
        bad("UTF-8 cut in a character", "datum_utf8", note(sized(&[b'a', 0xe2, 0x82]))),
        bad("overlong UTF-8", "datum_utf8", note(sized(&[0xc0, 0x80]))),
        bad("a surrogate in UTF-8", "datum_utf8", note(sized(&[0xed, 0xa0, 0x80]))),
        bad("UTF-8 above U+10FFFF", "datum_utf8", note(sized(&[0xf4, 0x90, 0x80, 0x80]))),
        bad("a label name that is no UTF-8", "datum_utf8", labels(&[b"a", &[0x80]])),
        bad("a kind that does not exist", "datum_index", renewed().set("kind", long(30))),
        bad("kind -1", "datum_index", renewed().set("kind", long(-1))),
        bad("a branch of body that does not exist", "datum_index", renewed().set("branch", long(30))),
        bad("branch -1 of body", "datum_index", renewed().set("branch", long(-1))),
        bad("a third branch of an option", "datum_index", renewed().set("task_id", long(2))),
        bad("branch 2^62 of an option", "datum_index", renewed().set("owner_seq", long(1 << 62))),
        bad("a service that does not exist", "datum_index", renewed().set("service", long(4))),
        bad("label names descending", "datum_map_order", labels(&[b"b", b"a"])),
        bad("a label name twice", "datum_map_order", labels(&[b"a", b"a"])),
        bad("a prefix after the longer name", "datum_map_order", labels(&[b"ab", b"a"])),
        bad("label names in UTF-16 order", "datum_map_order", labels(&["\u{10000}".as_bytes(), "\u{ffff}".as_bytes()])),
        bad("one byte too many", "datum_trailing", renewed().and(&[0])),
        bad("two datums", "datum_trailing", { let twice = renewed().record().bytes().unwrap(); renewed().and(&twice[5..]) }),
        bad("the first fault in reading order: range before boolean", "datum_range", created().set("priority", long(10)).set("trace_given", [2])),
        bad("the first fault in reading order: a needless group before its range", "datum_varint", sequence(&[0x81, 0x80, 0])),
        bad("the first fault in reading order: utf8 of a name before its order", "datum_utf8", labels(&[b"b", &[0x80, 0xff]])),
        bad("the first fault in reading order: order of a name before its value", "datum_map_order",
            created().set("labels", join(&[&long(2), &label(b"b"), &text("a"), &sized(&[0xff]), &long(0)]))),
        bad("the first fault in reading order: boolean before trailing", "datum_boolean", created().set("trace_given", [2]).and(&[0])),
        Case::bad("a fault of the datum before a wrong header kind", "datum_trailing", renewed().and(&[0]).record().header("kind", b"x")),
        bad("a fault of the datum before kind and body differ", "datum_trailing", renewed().set("branch", long(29)).and(&text("note")).and(&[0])),
    ]
}
