//! What others may feel, as it was given on the command line: to be given again.

use pace::Refusal;
use units::names;
use units::{bytes_exact, duration_exact, percent_exact};

use crate::cli::GoalArgs;

impl GoalArgs {
    /// Those that were given, each as a word that is read as the same.
    pub(crate) fn given(&self) -> Vec<String> {
        self.given_but(None)
    }

    /// The same; of one that was refused, what can be met instead.
    pub(crate) fn given_but(&self, refused: Option<Refusal>) -> Vec<String> {
        let (mut max_latency, mut deadline) = (self.max_latency, self.deadline);
        match refused {
            Some(Refusal::Latency { least, .. }) => max_latency = Some(least),
            Some(Refusal::Deadline { least, .. }) => deadline = Some(least),
            None => {}
        }
        let all = [
            ("slowdown", self.slowdown.map(percent_exact)),
            ("max-latency", max_latency.map(duration_exact)),
            ("deadline", deadline.map(duration_exact)),
            ("profile", self.profile.clone()),
        ];
        all.into_iter()
            .filter_map(|(option, value)| Some(format!("--{option}={}", value?)))
            .collect()
    }
}

/// Words as a shell reads them, with a blank before each.
pub(crate) fn in_shell(words: &[String]) -> String {
    words
        .iter()
        .map(|word| format!(" {}", names::shown(word)))
        .collect()
}

/// A size that is read as the same even where a plain number isn't one of bytes.
pub(crate) fn size_exact(bytes: u64) -> String {
    let text = bytes_exact(bytes);
    match text.ends_with(|c: char| c.is_ascii_digit()) {
        true => format!("{text}B"),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_change_is_quoted() {
        let words = ["--slowdown=5%", "--profile=my card.toml", "--profile=it's"];
        assert_eq!(
            in_shell(&words.map(str::to_owned)),
            " --slowdown=5% '--profile=my card.toml' \"--profile=it's\""
        );
        assert_eq!(in_shell(&[]), "");
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(
            [1 << 20, 4 << 10, 513].map(size_exact),
            ["1M", "4k", "513B"]
        );
    }
}
