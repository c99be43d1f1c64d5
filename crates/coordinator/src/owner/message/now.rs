//! A moment, as the owner is told it: it looks at no clock itself.

use service_kit::Clock;

/// Both clocks of the process at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// CLOCK_BOOTTIME, ms: for every duration.
    pub boot_ms: u64,
    /// Wall clock, Unix ms: for what is written into events, never for a timer.
    pub wall_ms: i64,
    /// Both in µs, to tell people when something was and how long it took; nothing else is done by them.
    pub fine: Fine,
}

/// Both clocks in µs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fine {
    /// CLOCK_BOOTTIME.
    pub boot_us: u64,
    /// Unix.
    pub wall_us: i64,
}

impl Now {
    /// A moment known to the ms.
    pub const fn at_ms(boot_ms: u64, wall_ms: i64) -> Self {
        Self {
            boot_ms,
            wall_ms,
            fine: Fine { boot_us: boot_ms.saturating_mul(1000), wall_us: wall_ms.saturating_mul(1000) },
        }
    }

    /// As a clock shows it now.
    pub fn of(clock: &impl Clock) -> Self {
        let fine = Fine { boot_us: clock.boot_us(), wall_us: clock.wall_us() };
        let (boot_ms, wall_ms) = (fine.boot_us / 1000, fine.wall_us.div_euclid(1000));
        Self { boot_ms, wall_ms, fine }
    }
}
