//! Proof by comparison: every output is there once and unpacks to its input, and nothing else is.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;

use super::files::{list, output_of};

/// What the comparison found.
#[derive(Debug, Default)]
pub struct Comparison {
    /// Outputs that unpack to exactly their input.
    pub right: usize,
    /// Everything that is not so, in words.
    pub wrong: Vec<String>,
}

/// Compares the outputs with the inputs, byte by byte.
pub fn compare(dir: &Path, inputs: &[PathBuf], out: &Path) -> anyhow::Result<Comparison> {
    let mut comparison = Comparison::default();
    let mut expected = BTreeSet::new();
    for input in inputs {
        let output = output_of(out, input);
        match same(&dir.join(input), &output) {
            Ok(true) => comparison.right += 1,
            Ok(false) => comparison.wrong.push(format!("{} does not unpack to its input", output.display())),
            Err(why) => comparison.wrong.push(format!("{}: {why}", output.display())),
        }
        expected.insert(output);
    }
    for found in list(out, Path::new(""))? {
        let found = out.join(found);
        if !expected.contains(&found) {
            comparison.wrong.push(format!("{} is nobody's output", found.display()));
        }
    }
    Ok(comparison)
}

fn same(input: &Path, output: &Path) -> std::io::Result<bool> {
    let mut plain = BufReader::new(File::open(input)?);
    let mut unpacked = GzDecoder::new(BufReader::new(File::open(output)?));
    let (mut a, mut b) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        let n = fill(&mut plain, &mut a)?;
        let m = fill(&mut unpacked, &mut b)?;
        if a[..n] != b[..m] {
            return Ok(false);
        }
        if n == 0 {
            return Ok(true);
        }
    }
}

fn fill(from: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..])? {
            0 => break,
            n => filled += n,
        }
    }
    Ok(filled)
}
