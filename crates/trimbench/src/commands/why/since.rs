//! `trimbench why --since` and `--recording`.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::time::Duration;

use diagnose::why::recorder::recording::Recording;
use diagnose::why::recorder::server;
use diagnose::why::{Observation, Subject};
use linux::clock::local_offset_s;
use record::units::names;

use crate::commands::why::args::WhyArgs;
use crate::console::Stream;
use crate::exit::{Error, usage};

const DAY_S: i64 = 86_400;

/// A moment in the past.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Since {
    /// So long ago.
    Ago(Duration),
    /// The last time that clocks showed this, in seconds since midnight.
    At(i64),
}

/// Parses `12:01`, `12:01:30` and `5m`.
pub(super) fn parse(text: &str) -> Result<Since, String> {
    if !text.contains(':') {
        let ago = record::units::parse_duration(text).map(Since::Ago);
        let neither = "name a time such as 12:01 or 12:01:30, or an age such as 5m";
        return ago.map_err(|_| neither.to_owned());
    }
    let field = |field: &str| {
        let digits = !field.is_empty() && field.bytes().all(|byte| byte.is_ascii_digit());
        field.parse().ok().filter(|_| digits && field.len() <= 2)
    };
    let fields: Vec<Option<i64>> = text.split(':').map(field).collect();
    let (hours, minutes, seconds) = match fields.as_slice() {
        [Some(hours), Some(minutes)] => (*hours, *minutes, 0),
        [Some(hours), Some(minutes), Some(seconds)] => (*hours, *minutes, *seconds),
        _ => return Err("a time is HH:MM or HH:MM:SS".to_owned()),
    };
    match hours < 24 && minutes < 60 && seconds < 60 {
        true => Ok(Since::At(hours * 3600 + minutes * 60 + seconds)),
        false => Err("there is no such time of day".to_owned()),
    }
}

impl Since {
    /// The moment in seconds since 1970: the last one before `now_unix_s`. Local time is ahead of
    /// UTC by `offset_s`.
    fn unix_s(self, now_unix_s: f64, offset_s: i64) -> f64 {
        match self {
            Since::Ago(ago) => now_unix_s - ago.as_secs_f64(),
            Since::At(of_day_s) => {
                let now_s = now_unix_s as i64;
                let today_s = (now_s + offset_s).rem_euclid(DAY_S);
                (now_s - (today_s - of_day_s).rem_euclid(DAY_S)) as f64
            }
        }
    }
}

/// `12:01:30` at a moment.
fn clock(unix_s: f64, offset_s: i64) -> String {
    let of_day_s = (unix_s.ceil() as i64 + offset_s).rem_euclid(DAY_S);
    let (hours, rest) = (of_day_s / 3600, of_day_s % 3600);
    format!("{hours:02}:{:02}:{:02}", rest / 60, rest % 60)
}

/// Returns the observation of a recorder.
pub(super) fn observed(args: &WhyArgs, recorder: &Path) -> Result<(Observation, Subject), Error> {
    let recording = match &args.recording {
        Some(path) => {
            let bad = |why: String| usage(format!("{}: {why}", names::shown(path)));
            let file = File::open(path).map_err(|error| bad(error.to_string()))?;
            Recording::read(BufReader::new(file)).map_err(|error| bad(error.to_string()))?
        }
        None => server::request(recorder).map_err(|error| usage(error.to_string()))?,
    };
    let (begins_s, ends_s) = (recording.begins_unix_s(), recording.head.unix_s);
    let offset_s = local_offset_s(ends_s as i64);
    let since = args.since.map(|since| since.unix_s(ends_s, offset_s));
    let mut from_s = since.unwrap_or(begins_s);
    // A clock shows whole seconds.
    if from_s < begins_s - 1.0 {
        let (begins, asked) = (clock(begins_s, offset_s), clock(from_s, offset_s));
        if let Some(Since::Ago(_)) = args.since {
            let kept = record::units::seconds(ends_s - begins_s);
            Stream::Err.print(&format!(
                "trimbench why: the recorder has kept {kept}: since {begins}\n"
            ));
            from_s = begins_s;
        } else {
            return Err(usage(format!(
                "{asked} is before all that the recorder has kept; ask for `--since {begins}` or \
                 later (it keeps 15 minutes at most)"
            )));
        }
    }
    let lasts = args.duration.map(|long| from_s + long.as_secs_f64());
    let to_s = lasts.unwrap_or(ends_s);
    let subject = args.pid.map_or(Subject::All, Subject::Process);
    Ok((recording.observed(from_s, to_s, args.pid), subject))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_the_last_before_now() {
        let at = |text: &str| parse(text).unwrap();
        assert_eq!(at("12:01"), Since::At(43_260));
        assert_eq!(at("7:05:09"), Since::At(25_509));
        assert_eq!(at("5m"), Since::Ago(Duration::from_secs(300)));
        for odd in [
            "24:00", "12:60", "12", "12:", ":", "1:2:3:4", "+1:00", "noon",
        ] {
            // A bare number has no unit.
            assert!(parse(odd).is_err(), "{odd}");
        }
        let midnight = 1_700_006_400.0;
        let half_past_twelve = midnight + 45_000.0;
        assert_eq!(at("12:01").unix_s(half_past_twelve, 0), midnight + 43_260.0);
        // Yesterday.
        assert_eq!(at("23:59").unix_s(half_past_twelve, 0), midnight - 60.0);
        // An hour ahead of UTC.
        assert_eq!(
            at("13:01").unix_s(half_past_twelve, 3600),
            midnight + 43_260.0
        );
        assert_eq!(
            at("5m").unix_s(half_past_twelve, 0),
            half_past_twelve - 300.0
        );
        assert_eq!(clock(midnight + 43_260.0, 3600), "13:01:00");
        assert_eq!(clock(midnight - 1.0, 0), "23:59:59");
    }
}
