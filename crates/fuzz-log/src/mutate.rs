//! Mutations: of bytes, of varints, and of whole records.

use rand::seq::IndexedRandom as _;
use rand::{Rng, RngExt as _};

use crate::Record;

const BYTES: [u8; 12] = [0, 1, 2, 3, 0x3b, 0x3c, 0x7f, 0x80, 0x81, 0xc0, 0xfe, 0xff];
const NUMBERS: [i64; 14] = [
    0,
    1,
    -1,
    2,
    9,
    10,
    255,
    256,
    u32::MAX as i64,
    u32::MAX as i64 + 1,
    i32::MAX as i64,
    i32::MIN as i64,
    i64::MAX,
    i64::MIN,
];

/// Mutates a record in one to four steps; seven times of eight it is mended afterwards.
pub fn record(record: &mut Record, corpus: &[Record], rng: &mut impl Rng) {
    if rng.random_ratio(1, 16) {
        outside(record, rng);
        return;
    }
    if let Some(value) = &mut record.value {
        for _ in 0..rng.random_range(1..=4) {
            bytes(value, corpus, rng);
        }
    }
    if !rng.random_ratio(1, 8) {
        record.mend();
    }
}

// Headers, key, tombstone, frame.
fn outside(record: &mut Record, rng: &mut impl Rng) {
    match rng.random_range(0..8) {
        0 => record.value = None,
        1 => record.key = None,
        2 => record.key = Some((0..rng.random_range(0..24)).map(|_| rng.random()).collect()),
        3 => drop(pick(record.headers.len(), rng).map(|at| record.headers.remove(at))),
        4 => {
            if let Some(at) = pick(record.headers.len(), rng) {
                record.headers.push(record.headers[at].clone());
            }
        }
        5 => {
            if let Some(at) = pick(record.headers.len(), rng) {
                record.headers[at].1 = (0..rng.random_range(0..12)).map(|_| rng.random()).collect();
            }
        }
        6 => {
            if let Some(frame) = record.value.as_mut().and_then(|v| v.get_mut(..5)) {
                frame[rng.random_range(0..5)] = rng.random();
                record.sign();
            }
        }
        _ => {
            if let Some(value) = &mut record.value {
                value.truncate(rng.random_range(0..8));
                record.sign();
            }
        }
    }
}

fn bytes(value: &mut Vec<u8>, corpus: &[Record], rng: &mut impl Rng) {
    let Some(at) = pick(value.len(), rng) else { return };
    let end = (at + rng.random_range(1..=16)).min(value.len());
    match rng.random_range(0..9) {
        0 => value[at] ^= 1 << rng.random_range(0..8),
        1 => value[at] = *BYTES.choose(rng).expect("not empty"),
        2 => value[at] = rng.random(),
        3 => drop(value.drain(at..end)),
        4 => drop(value.splice(at..at, (0..rng.random_range(1..=16)).map(|_| rng.random::<u8>()).collect::<Vec<_>>())),
        5 => drop(value.splice(at..end.min(at + rng.random_range(0..=2)), varint(rng))),
        6 => value.truncate(at),
        // A run of small items behind a large count: the dearest thing for a reader's memory.
        7 => {
            // Up to the limit of a record and beyond, but seldom: it takes its time.
            let most = if rng.random_ratio(1, 256) { 1 << 21 } else { 1 << 12 };
            let items = rng.random_range(1..most);
            let mut run = zigzag(items);
            run.extend(std::iter::repeat_n(0, items as usize * rng.random_range(1..=3)));
            value.splice(at..at, run);
        }
        _ => {
            if let Some(other) = corpus.choose(rng).and_then(|r| r.value.as_ref()) {
                let from = rng.random_range(0..=other.len());
                let upto = (from + rng.random_range(0..=64)).min(other.len());
                value.splice(at..end, other[from..upto].iter().copied());
            }
        }
    }
}

fn varint(rng: &mut impl Rng) -> Vec<u8> {
    let mut bytes = zigzag(*NUMBERS.choose(rng).expect("not empty"));
    if rng.random_ratio(1, 8) {
        // One needless group more.
        *bytes.last_mut().expect("not empty") |= 0x80;
        bytes.push(0);
    }
    bytes
}

fn zigzag(n: i64) -> Vec<u8> {
    let mut rest = ((n << 1) ^ (n >> 63)) as u64;
    let mut out = Vec::new();
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
    out
}

fn pick(len: usize, rng: &mut impl Rng) -> Option<usize> {
    (len > 0).then(|| rng.random_range(0..len))
}
