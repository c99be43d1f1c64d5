//! Waiting longer each time.

/// `min × 2^tried`, at most `max`.
pub(super) fn backoff_ms(min: u64, max: u64, tried: u32) -> u64 {
    min.saturating_mul(1u64.checked_shl(tried).unwrap_or(u64::MAX)).min(max)
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_doubles_up_to_the_limit() {
        assert_eq!(
            [0, 1, 2, 5, 6, 64, u32::MAX].map(|n| super::backoff_ms(100, 5_000, n)),
            [100, 200, 400, 3_200, 5_000, 5_000, 5_000]
        );
    }
}
