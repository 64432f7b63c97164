//! How far `rm` is.

use std::time::Duration;

use reclaim::Progress;
use record::units::{byte_rate, bytes, counted};

use crate::freeing;

/// How far it is, in words. The time left is printed after a hundredth is done.
pub(super) fn line(progress: &Progress, elapsed: Duration) -> String {
    let mut parts = Vec::new();
    let (freed, all) = (progress.freed_bytes, progress.total_bytes);
    let per_s = freed as f64 / elapsed.as_secs_f64();
    if freed > 0 || all > 0 {
        let of = match all {
            0 => String::new(),
            // Nobody knew how much a subvolume holds.
            all if all < freed => String::new(),
            all => format!(" of {}", bytes(all)),
        };
        parts.push(format!("{}{of} freed", bytes(freed)));
        parts.push(byte_rate(per_s));
    }
    if progress.names > 0 {
        parts.push(counted(progress.names, "name"));
    }
    let left = (freed >= all / 100).then(|| all.saturating_sub(freed));
    let text = freeing::line(parts, progress, left, per_s, elapsed);
    match text.is_empty() {
        true => "looking".to_owned(),
        false => text,
    }
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
