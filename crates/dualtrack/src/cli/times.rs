//! Times and durations as people write and read them. UTC throughout.

use jiff::Timestamp;

/// A duration of `text` in ms: `500ms`, `30s`, `5m`, `2h`, `7d`; a number alone is seconds.
pub fn duration_ms(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "ms" => Some(1),
        "" | "s" => Some(1_000),
        "m" => Some(60_000),
        "h" => Some(3_600_000),
        "d" => Some(86_400_000),
        _ => None,
    };
    let ms = factor.and_then(|factor| number.parse::<u64>().ok()?.checked_mul(factor));
    ms.ok_or_else(|| format!("{text:?} is no duration: 500ms, 30s, 5m, 2h, 7d"))
}

/// A moment: `+DURATION` from now, `-DURATION` ago, Unix ms, or RFC 3339 (`2026-11-30T08:00:00Z`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// From now, ms.
    In(u64),
    /// Before now, ms.
    Ago(u64),
    /// Unix ms.
    At(i64),
}

impl Moment {
    /// Reads one.
    pub fn parse(text: &str) -> Result<Self, String> {
        let read = match (text.strip_prefix('+'), text.strip_prefix('-')) {
            (Some(duration), _) => duration_ms(duration).ok().map(Self::In),
            (None, Some(duration)) => duration_ms(duration).ok().map(Self::Ago),
            (None, None) => instant_ms(text).map(Self::At),
        };
        read.ok_or_else(|| {
            format!("{text:?} is neither +DURATION, -DURATION, Unix ms, nor a time such as 2026-11-30T08:00:00Z")
        })
    }

    /// Unix ms.
    pub fn unix_ms(self, now_ms: i64) -> i64 {
        match self {
            Self::In(ms) => now_ms.saturating_add_unsigned(ms),
            Self::Ago(ms) => now_ms.saturating_sub_unsigned(ms),
            Self::At(ms) => ms,
        }
    }
}

/// Unix ms of a number of them, or of an RFC 3339 time, which names its offset from UTC.
pub fn instant_ms(text: &str) -> Option<i64> {
    text.parse().ok().or_else(|| Some(text.parse::<Timestamp>().ok()?.as_millisecond()))
}

/// `2026-11-30 00:47:12.345Z`.
pub fn shown(unix_ms: i64) -> String {
    match Timestamp::from_millisecond(unix_ms) {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M:%S%.3fZ").to_string(),
        // Beyond the years people count in; it came from a stranger.
        Err(_) => format!("{unix_ms} ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_shown_in_utc() {
        for (ms, text) in [
            (0, "1970-01-01 00:00:00.000Z"),
            (-1, "1969-12-31 23:59:59.999Z"),
            (951_782_400_000, "2000-02-29 00:00:00.000Z"),
            (4_107_542_399_999, "2100-02-28 23:59:59.999Z"),
            (1_795_999_119_960, "2026-11-30 00:38:39.960Z"),
            (i64::MAX, "9223372036854775807 ms"),
        ] {
            assert_eq!(shown(ms), text);
        }
    }

    #[test]
    fn durations_have_units() {
        for (text, ms) in [("500ms", 500), ("30", 30_000), ("30s", 30_000), ("5m", 300_000), ("7d", 604_800_000)] {
            assert_eq!(duration_ms(text), Ok(ms));
        }
        for text in ["", "s", "-1s", "1.5s", "1y", "99999999999999999999d"] {
            assert!(duration_ms(text).is_err(), "{text}");
        }
        assert_eq!(Moment::parse("+2s").map(|m| m.unix_ms(5)), Ok(2_005));
        assert_eq!(Moment::parse("-2s").map(|m| m.unix_ms(5_000)), Ok(3_000));
        assert_eq!(Moment::parse("7").map(|m| m.unix_ms(5)), Ok(7));
        assert_eq!(Moment::parse("2026-11-30T08:38:39.960+08:00").map(|m| m.unix_ms(5)), Ok(1_795_999_119_960));
        for text in ["tomorrow", "2026-11-30", "2026-11-30T08:00:00", "+", ""] {
            assert!(Moment::parse(text).is_err(), "{text}");
        }
    }
}
