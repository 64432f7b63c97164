//! The hours of a day in which trims run.

use std::fmt;
use std::str::FromStr;
use std::time::SystemTime;

const DAY: u32 = 24 * 60;

/// From one minute of the local day to another, over midnight where the end comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hours {
    from: u32,
    to: u32,
}

impl Hours {
    /// Whether a minute of the day is within.
    fn has(self, minute: u32) -> bool {
        match self.from <= self.to {
            true => (self.from..self.to).contains(&minute),
            false => minute >= self.from || minute < self.to,
        }
    }

    /// Whether it is the time now, by the local clock.
    pub fn is_now(self) -> bool {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let unix = now.map_or(0, |now| i64::try_from(now.as_secs()).unwrap_or(0));
        let local = unix + linux::clock::local_offset_s(unix);
        let minute = local.div_euclid(60).rem_euclid(i64::from(DAY));
        self.has(u32::try_from(minute).unwrap_or(0))
    }
}

impl FromStr for Hours {
    type Err = String;

    fn from_str(text: &str) -> Result<Hours, String> {
        let wrong = || format!("{text}: must be two times of the day, as in 01:00-06:00");
        let minute = |text: &str| -> Option<u32> {
            let (hour, minute) = text.split_once(':')?;
            let number = |text: &str, end: u32| {
                let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
                text.parse().ok().filter(|&n: &u32| digits && n < end)
            };
            Some(number(hour, 24)? * 60 + number(minute, 60)?)
        };
        let (from, to) = text.split_once('-').ok_or_else(wrong)?;
        let hours = Hours {
            from: minute(from).ok_or_else(wrong)?,
            to: minute(to).ok_or_else(wrong)?,
        };
        match hours.from == hours.to {
            true => Err(wrong()),
            false => Ok(hours),
        }
    }
}

impl fmt::Display for Hours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [from, to] = [self.from, self.to].map(|at| format!("{:02}:{:02}", at / 60, at % 60));
        write!(f, "{from}-{to}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_end_where_they_end_and_go_over_midnight() {
        let night: Hours = "23:30-06:00".parse().unwrap();
        let has = |hours: Hours, hour: u32, minute: u32| hours.has(hour * 60 + minute);
        assert!(has(night, 23, 30) && has(night, 0, 0) && has(night, 5, 59));
        assert!(!has(night, 6, 0) && !has(night, 23, 29));
        let day: Hours = "1:00-06:30".parse().unwrap();
        assert!(has(day, 1, 0) && !has(day, 6, 30) && !has(day, 0, 59));
        assert_eq!(day.to_string(), "01:00-06:30");
        for wrong in [
            "",
            "1-2",
            "24:00-01:00",
            "01:60-02:00",
            "01:00-01:00",
            "+1:00-2:00",
        ] {
            assert!(wrong.parse::<Hours>().is_err(), "{wrong}");
        }
    }
}
