//! How values of `import` are read.

use record::units::values::duration;

use formats::Moment;

/// `md0=nvme0n1,nvme1n1`.
pub(super) fn members(text: &str) -> Result<(String, Vec<String>), String> {
    let (whole, parts) = text
        .split_once('=')
        .ok_or("give a device and what it is made of, e.g. md0=nvme0n1,nvme1n1")?;
    let named = |name: &str| name.trim().trim_start_matches("/dev/").to_owned();
    let parts: Vec<String> = parts.split(',').map(named).collect();
    let whole = named(whole);
    if whole.is_empty() || parts.iter().any(String::is_empty) {
        return Err("a name is empty; give e.g. md0=nvme0n1,nvme1n1".to_owned());
    }
    if parts.contains(&whole) {
        return Err(format!("{whole} can't be a part of itself"));
    }
    Ok((whole, parts))
}

/// A time after the begin, or a date and time in UTC.
pub(super) fn at(text: &str) -> Result<Moment, String> {
    if let Some(moment) = Moment::utc(text) {
        return Ok(moment);
    }
    duration(text)
        .map(|after| Moment::After(after.as_secs_f64()))
        .map_err(|e| format!("{e}; or give a time in UTC like 2024-06-19T05:02:34Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
        assert_eq!(at("30s"), Ok(Moment::After(30.0)));
        let second = 1_718_773_354.0;
        assert_eq!(at("2024-06-19T05:02:34Z"), Ok(Moment::Unix(second)));
        assert_eq!(at("1970-01-01 00:00:00Z"), Ok(Moment::Unix(0.0)));
        for wrong in ["", "soon", "2024-13-19T05:02:34Z", "05:02:34Z", "-3s"] {
            assert!(at(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn made_of() {
        let (whole, parts) = members("md0=nvme0n1,/dev/nvme1n1").unwrap();
        assert_eq!(whole, "md0");
        assert_eq!(parts, ["nvme0n1", "nvme1n1"]);
        for wrong in ["md0", "md0=", "=sda", "md0=sda,,sdb", "md0=md0"] {
            assert!(members(wrong).is_err(), "{wrong}");
        }
    }
}
