//! The decoder as a target: an event or a reason for any bytes, and one encoding per event.

use task_events::{Encoder, Kind, RecordParts, Sampling, decode, samples, to_json};

use crate::{Outcomes, Record, Target};

/// [`task_events::decode`].
pub struct Decoder {
    encoder: Encoder,
}

impl Default for Decoder {
    fn default() -> Self {
        Self { encoder: Encoder::new() }
    }
}

impl Target for Decoder {
    fn corpus(&self) -> Vec<Record> {
        let mut encoder = Encoder::new();
        Kind::ALL
            .iter()
            .flat_map(|&kind| [samples::minimal(kind), samples::full(kind)])
            .map(|event| {
                Record::of(&encoder.encode(&event, samples::PARTITION, Sampling::Recorded).expect("samples encode"))
            })
            .collect()
    }

    fn read(&mut self, records: &[Record], outcomes: &mut Outcomes) -> Result<(), String> {
        for record in records {
            let value = record.value.as_deref();
            let outcome = match decode(RecordParts { headers: record.headers(), value }) {
                Ok(event) => {
                    let again = self
                        .encoder
                        .encode(&event, samples::PARTITION, Sampling::Recorded)
                        .map_err(|e| format!("decoded, but not encoded again: {e}: {}", to_json(&event)))?;
                    if Some(&again.value[..]) != value {
                        return Err(format!("encodes to other bytes: {}", to_json(&event)));
                    }
                    "ok"
                }
                Err(reason) => reason.as_str(),
            };
            *outcomes.entry(outcome).or_default() += 1;
        }
        Ok(())
    }
}
