//! Lines out of a stream of bytes, each kept up to a limit and counted beyond it.

/// A line that grows.
#[derive(Debug)]
pub(super) struct Lines {
    limit: usize,
    begin: Vec<u8>,
    bytes: u64,
}

impl Lines {
    pub fn new(limit: usize) -> Self {
        Self { limit, begin: Vec::new(), bytes: 0 }
    }

    /// Takes bytes in; `line` gets the beginning and the length of each line that they end.
    pub fn push(&mut self, mut bytes: &[u8], mut line: impl FnMut(&[u8], u64)) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.grow(&bytes[..end]);
            self.end(&mut line);
            bytes = &bytes[end + 1..];
        }
        self.grow(bytes);
    }

    /// The stream is over: what it ended with is a line too, unless it is empty.
    pub fn finish(mut self, mut line: impl FnMut(&[u8], u64)) {
        if self.bytes > 0 {
            self.end(&mut line);
        }
    }

    fn grow(&mut self, bytes: &[u8]) {
        let room = self.limit.saturating_sub(self.begin.len()).min(bytes.len());
        self.begin.extend_from_slice(&bytes[..room]);
        self.bytes += bytes.len() as u64;
    }

    fn end(&mut self, line: &mut impl FnMut(&[u8], u64)) {
        line(&self.begin, self.bytes);
        self.begin.clear();
        // One long line shall not cost its memory for ever.
        self.begin.shrink_to(64 * 1024);
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_the_same_however_they_arrive() {
        let text = b"one\n\nthree is long\nfour";
        let expected: Vec<(Vec<u8>, u64)> =
            vec![(b"one".into(), 3), (vec![], 0), (b"three".into(), 13), (b"four".into(), 4)];
        for chunk in 1..=text.len() {
            let mut found = Vec::new();
            let mut lines = Lines::new(5);
            text.chunks(chunk).for_each(|bytes| lines.push(bytes, |begin, n| found.push((begin.to_vec(), n))));
            lines.finish(|begin, n| found.push((begin.to_vec(), n)));
            assert_eq!(found, expected, "{chunk}");
        }
    }
}
