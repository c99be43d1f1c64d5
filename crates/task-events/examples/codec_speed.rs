//! Speed of the codec, in ns per record on one core: `cargo run --release -p task-events --example codec_speed`.
//!
//! Prints decode (whole: headers, checksum, datum), the datum alone by serde_avro_fast without
//! strict rules, and encode, for typical kinds. Ratios in one run say more than the figures.

use std::hint::black_box;
use std::time::Instant;

use task_events::{Encoder, Event, Kind, RecordParts, SCHEMA_JSON, Sampling, decode, samples};

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn ns_each(mut work: impl FnMut()) -> f64 {
    // The best of many short stretches: what one core can do when nobody takes it away.
    const N: u32 = 1_000;
    let mut best = f64::MAX;
    for _ in 0..400 {
        let start = Instant::now();
        for _ in 0..N {
            work();
        }
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(N));
    }
    best
}

#[expect(clippy::print_stdout, reason = "an example that prints its result")]
fn main() {
    let schema: serde_avro_fast::Schema = SCHEMA_JSON.parse().expect("schema");
    println!("{:<22} {:>6} {:>8} {:>12} {:>8}", "kind", "bytes", "decode", "plain datum", "encode");
    let picks = [
        Kind::TaskCreated,
        Kind::TaskAssigned,
        Kind::TaskStarted,
        Kind::TaskStepCompleted,
        Kind::TaskCompleted,
        Kind::OwnershipRenewed,
    ];
    for (form, of) in [("minimal", samples::minimal as fn(Kind) -> Event), ("full", samples::full)] {
        println!("-- {form}");
        for kind in picks {
            let event = of(kind);
            let mut encoder = Encoder::new();
            let record = encoder.encode(&event, samples::PARTITION, Sampling::Recorded).expect("encodes");
            let decode_ns = ns_each(|| {
                let headers = record.headers.iter().map(|(n, c)| (*n, &c[..]));
                black_box(decode(RecordParts { headers, value: Some(black_box(&record.value)) }).expect("decodes"));
            });
            let plain_ns = ns_each(|| {
                let datum = black_box(&record.value[5..]);
                black_box(serde_avro_fast::from_datum_slice::<Event>(datum, &schema).expect("decodes"));
            });
            let encode_ns = ns_each(|| {
                black_box(encoder.encode(black_box(&event), samples::PARTITION, Sampling::Recorded).expect("encodes"));
            });
            println!("{kind:<22} {:>6} {decode_ns:>8.0} {plain_ns:>12.0} {encode_ns:>8.0}", record.value.len());
        }
    }
}
