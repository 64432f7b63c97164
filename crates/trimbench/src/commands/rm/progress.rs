//! The progress that a person sees while space is freed, from the first second on.

use std::time::Duration;

use reclaim::Progress;

/// An estimate of the rest is printed after this time, and after a hundredth is done.
const ESTIMATED: Duration = Duration::from_secs(3);

/// How far it is, in words.
pub(super) fn line(progress: &Progress, elapsed: Duration) -> String {
    let mut parts = Vec::new();
    let seconds = elapsed.as_secs_f64();
    let freed = progress.freed_bytes;
    let per_s = freed as f64 / seconds;
    if freed > 0 || progress.total_bytes > 0 {
        let total = match progress.total_bytes {
            0 => String::new(),
            total => format!(" of {}", record::units::bytes(total)),
        };
        parts.push(format!("{}{total} freed", record::units::bytes(freed)));
        parts.push(record::units::byte_rate(per_s));
    }
    if progress.names > 0 {
        parts.push(record::units::counted(progress.names, "name"));
    }
    if progress.debt_bytes > 0 {
        parts.push(format!(
            "{} to discard",
            record::units::bytes(progress.debt_bytes)
        ));
    }
    if let Some(added) = progress.added_latency {
        let added = record::units::latency_us(added.as_secs_f64() * 1e6);
        parts.push(format!("other I/O waits {added} longer"));
    }
    let left = progress.total_bytes.saturating_sub(freed);
    // Before, there is no rate that an estimate could rest on.
    if left > 0 && per_s >= 1.0 && elapsed >= ESTIMATED && freed >= progress.total_bytes / 100 {
        parts.push(format!(
            "{} left",
            record::units::seconds(left as f64 / per_s)
        ));
    }
    if parts.is_empty() {
        parts.push("looking".to_owned());
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_how_far_how_fast_and_how_long() {
        let progress = Progress {
            total_bytes: 4 << 30,
            freed_bytes: 1 << 30,
            debt_bytes: 1 << 20,
            ..Progress::default()
        };
        let text = line(&progress, Duration::from_secs(10));
        for part in [
            "1.0 GiB of 4.0 GiB freed",
            "1.0 MiB to discard",
            "30",
            "left",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        // No estimate before there is a rate.
        assert!(!line(&progress, Duration::from_secs(1)).contains("left"));
        let begun = Progress {
            freed_bytes: 1 << 20,
            names: 1,
            ..progress
        };
        let text = line(&begun, Duration::from_secs(10));
        assert!(!text.contains("left") && text.contains("1 name,"), "{text}");
        let one = Progress {
            names: 1,
            ..Progress::default()
        };
        assert_eq!(line(&one, Duration::from_secs(1)), "1 name");
        assert_eq!(
            line(&Progress::default(), Duration::from_secs(1)),
            "looking"
        );
    }
}
