//! Random numbers as an argument: jitter, incarnations. A simulator passes a seeded source.

use rustix::rand::{GetRandomFlags, getrandom};

/// Source of uniform random numbers.
pub trait Entropy: Send {
    /// The next one.
    fn next_u64(&mut self) -> u64;
}

impl<E: Entropy + ?Sized> Entropy for Box<E> {
    fn next_u64(&mut self) -> u64 {
        (**self).next_u64()
    }
}

/// The operating system's generator, read in blocks.
#[derive(Debug)]
pub struct SystemEntropy {
    block: [u8; 256],
    left: usize,
}

impl Default for SystemEntropy {
    fn default() -> Self {
        Self { block: [0; 256], left: 0 }
    }
}

impl Entropy for SystemEntropy {
    fn next_u64(&mut self) -> u64 {
        if self.left < 8 {
            self.refill();
        }
        let end = self.left;
        self.left -= 8;
        let mut number = [0; 8];
        number.copy_from_slice(&self.block[self.left..end]);
        u64::from_le_bytes(number)
    }
}

impl SystemEntropy {
    // Up to 256 bytes come whole once the generator is seeded; before that, and when a signal
    // interrupts the wait for the seed, ask again.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the system's random numbers")]
    fn refill(&mut self) {
        while getrandom(&mut self.block, GetRandomFlags::empty()) != Ok(self.block.len()) {}
        self.left = self.block.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_differ_across_refills() {
        let mut source: Box<dyn Entropy> = Box::new(SystemEntropy::default());
        let mut all: Vec<_> = (0..100).map(|_| source.next_u64()).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 100);
    }
}
