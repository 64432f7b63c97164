//! What a person sees while space is freed, from the first second on.

use std::time::Duration;

use reclaim::Progress;
use timeline::units;

/// How far it is, in words.
pub(super) fn line(progress: &Progress, elapsed: Duration) -> String {
    let mut parts = Vec::new();
    let seconds = elapsed.as_secs_f64();
    let freed = progress.freed_bytes;
    let per_s = freed as f64 / seconds;
    if freed > 0 || progress.total_bytes > 0 {
        let total = match progress.total_bytes {
            0 => String::new(),
            total => format!(" of {}", units::bytes(total)),
        };
        parts.push(format!("{}{total} freed", units::bytes(freed)));
        parts.push(units::byte_rate(per_s));
    }
    if progress.names > 0 {
        parts.push(format!("{} names", units::count(progress.names)));
    }
    if progress.debt_bytes > 0 {
        parts.push(format!("{} to discard", units::bytes(progress.debt_bytes)));
    }
    if let Some(added) = progress.added_latency {
        let added = units::latency_us(added.as_secs_f64() * 1e6);
        parts.push(format!("others wait {added} longer"));
    }
    let left = progress.total_bytes.saturating_sub(freed);
    if left > 0 && per_s >= 1.0 {
        parts.push(format!("{} left", units::seconds(left as f64 / per_s)));
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
        assert_eq!(
            line(&Progress::default(), Duration::from_secs(1)),
            "looking"
        );
    }
}
