//! Times and durations as people write and read them. UTC throughout.

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

/// A moment: `+DURATION` from now, or Unix ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// From now, ms.
    In(u64),
    /// Unix ms.
    At(i64),
}

impl Moment {
    /// Reads one.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.strip_prefix('+') {
            Some(duration) => duration_ms(duration).map(Self::In),
            None => text.parse().map(Self::At).map_err(|_| format!("{text:?} is neither +DURATION nor Unix ms")),
        }
    }

    /// Unix ms.
    pub fn unix_ms(self, now_ms: i64) -> i64 {
        match self {
            Self::In(ms) => now_ms.saturating_add_unsigned(ms),
            Self::At(ms) => ms,
        }
    }
}

/// `2026-11-30 00:47:12.345Z`.
pub fn shown(unix_ms: i64) -> String {
    let (days, in_day) = (unix_ms.div_euclid(86_400_000), unix_ms.rem_euclid(86_400_000));
    let (year, month, day) = civil(days);
    let (hour, minute, second, ms) = (in_day / 3_600_000, in_day / 60_000 % 60, in_day / 1_000 % 60, in_day % 1_000);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

// Days since 1970-01-01 as a date of the proleptic Gregorian calendar: years are counted from March,
// so that the leap day is the last of its year, and in eras of 400 years, which are all alike.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
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
        assert_eq!(Moment::parse("7").map(|m| m.unix_ms(5)), Ok(7));
        assert!(Moment::parse("tomorrow").is_err());
    }
}
