//! Pure: times and durations as people write and read them.

use std::time::Duration;

use jiff::{Timestamp, tz::TimeZone};

/// A point in time on the user's clock: `2026-11-30 21:58:20`.
pub(crate) fn local(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned_datetime(zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// How long something took, to three places that matter: `850 µs`, `12.3 ms`, `4.20 s`, `3 min 5 s`, `2 h 4 min`.
pub(crate) fn took(duration: Duration) -> String {
    let micros = duration.as_micros();
    let seconds = duration.as_secs();
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..100_000 => format!("{:.1} ms", duration.as_secs_f64() * 1e3),
        100_000..1_000_000 => format!("{} ms", duration.as_millis()),
        1_000_000..60_000_000 => format!("{:.2} s", duration.as_secs_f64()),
        60_000_000..3_600_000_000 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

/// A size in bytes: `512 B`, `1.5 KB` (1,000 bytes), `20 MB`.
pub(crate) fn size(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "for people, to one decimal place")]
    let scaled = |unit: u64| bytes as f64 / unit as f64;
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} KB", scaled(1_000)),
        1_000_000..1_000_000_000 => format!("{:.1} MB", scaled(1_000_000)),
        _ => format!("{:.1} GB", scaled(1_000_000_000)),
    }
}

/// Reads a duration: whole numbers with units `ms`, `s`, `m`, `h`, `d`, one after the other: `20s`, `1h30m`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    const HELP: &str = "takes a number and a unit (ms, s, m, h or d), such as `20s`, `10m` or `1h30m`";
    let mut rest = text.trim();
    let mut total = Duration::ZERO;
    if rest.is_empty() {
        return Err(HELP.to_owned());
    }
    while !rest.is_empty() {
        let digits = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|character: char| !character.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let number: u64 = number.parse().map_err(|_| HELP.to_owned())?;
        let millis = match unit {
            "ms" => 1,
            "s" | "sec" => 1_000,
            "m" | "min" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(HELP.to_owned()),
        };
        let part = number.checked_mul(millis).map(Duration::from_millis);
        total = part.and_then(|part| total.checked_add(part)).ok_or_else(|| "is too long".to_owned())?;
        rest = after.trim_start();
    }
    Ok(total)
}

/// A point in time as the user gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// So long before now.
    Ago(Duration),
    /// At this time.
    At(Timestamp),
}

impl Moment {
    /// The point in time, seen from `now`. Before the earliest representable time it is that time.
    pub(crate) fn resolve(self, now: Timestamp) -> Timestamp {
        match self {
            Self::Ago(ago) => now.checked_sub(ago).unwrap_or(Timestamp::MIN),
            Self::At(at) => at,
        }
    }
}

/// Reads a point in time: a duration before now (`1h`) or RFC 3339 (`2026-11-30T21:00:00+08:00`).
pub(crate) fn moment(text: &str) -> Result<Moment, String> {
    if let Ok(ago) = duration(text) {
        return Ok(Moment::Ago(ago));
    }
    text.parse().map(Moment::At).map_err(|_| {
        "takes a time before now such as `1h` or `2d`, or an RFC 3339 time such as `2026-11-30T21:00:00Z`".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_are_read_with_their_units_and_a_bare_number_is_refused() {
        let read = |text| duration(text).ok().map(|duration| duration.as_millis());
        assert_eq!(read("20s"), Some(20_000));
        assert_eq!(read("1h30m"), Some(5_400_000));
        assert_eq!(read("1d 250ms"), Some(86_400_250));
        for wrong in
            ["", "20", "s", "20 parsecs", "-1s", "1.5s", "99999999999999999999s", "18446744073709551615d", "1ſ"]
        {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_time_is_before_now_or_absolute_and_shown_on_the_users_clock() {
        let now: Timestamp = "2026-11-30T21:58:20Z".parse().unwrap();
        let zone = TimeZone::fixed(jiff::tz::offset(8));
        let shown = |text| local(moment(text).unwrap().resolve(now), &zone);
        assert_eq!(shown("1h"), "2026-12-01 04:58:20");
        assert_eq!(shown("2026-11-30T21:00:00+08:00"), "2026-11-30 21:00:00");
        assert!(moment("yesterday").is_err());
        assert_eq!(moment("99999999d").unwrap().resolve(now), Timestamp::MIN);
    }

    #[test]
    fn spans_and_sizes_are_short() {
        let shown: Vec<String> = [850, 12_345, 420_000, 4_200_000, 185_000_000, 7_440_000_000]
            .map(|micros| took(Duration::from_micros(micros)))
            .into();
        insta::assert_snapshot!(shown.join(", "), @"850 µs, 12.3 ms, 420 ms, 4.20 s, 3 min 5 s, 2 h 4 min");
        let shown: Vec<String> = [512, 1_500, 20_000_000, 3_000_000_000].map(size).into();
        insta::assert_snapshot!(shown.join(", "), @"512 B, 1.5 KB, 20.0 MB, 3.0 GB");
    }

    proptest! {
        #[test]
        fn no_text_makes_the_readers_panic(text in any::<String>()) {
            let _ = duration(&text);
            let _ = moment(&text);
        }

        #[test]
        fn every_duration_in_seconds_reads_back(seconds in 0_u64..1_000_000_000) {
            prop_assert_eq!(duration(&format!("{seconds}s")), Ok(Duration::from_secs(seconds)));
        }
    }
}
