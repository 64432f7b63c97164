//! Escapes the text of a record. Names of files, drives and actors can be hostile.

use record::units::is_unit;

/// Text that is text wherever it stands in a page or an SVG, also in a quoted attribute, and has no
/// character that XML 1.0 forbids.
pub(crate) fn text(raw: &str) -> String {
    let mut safe = String::with_capacity(raw.len() + 8);
    for c in raw.chars() {
        match c {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            '\'' => safe += "&#39;",
            // A page may not hold them, and they can turn the text around them.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}'..='\u{ffff}' => {
                safe.push('\u{fffd}')
            }
            '\u{2028}' | '\u{2029}' => safe.push('\n'),
            c if c.is_control() && c != '\n' => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

/// [`text`] for sentences: a number and its unit stay on one line.
pub(crate) fn prose(raw: &str) -> String {
    let mut safe = text(raw);
    for (at, _) in safe.clone().match_indices(' ').rev() {
        let number = safe[..at].ends_with(|c: char| c.is_ascii_digit());
        let word = safe[at + 1..].split(char::is_whitespace).next();
        if number && word.is_some_and(is_unit) {
            safe.replace_range(at..=at, "\u{a0}");
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn text_has_no_markup(raw in any::<String>()) {
            let safe = text(&raw);
            let markup = ['<', '>', '"', '\'', '\u{1b}', '\0'];
            prop_assert!(!safe.contains(markup));
        }
    }

    #[test]
    fn a_number_and_its_unit_stay_together() {
        assert_eq!(
            prose("4.0 GiB in 1 file took 0.94 s (49 % of 43,700/s), 1.1 GB/s; 3 min 20 s."),
            "4.0\u{a0}GiB in 1 file took 0.94\u{a0}s (49\u{a0}% of 43,700/s), 1.1\u{a0}GB/s; \
             3\u{a0}min 20\u{a0}s."
        );
        assert_eq!(prose("depth 8 s <b>"), "depth 8\u{a0}s &lt;b&gt;");
        assert_eq!(prose("a 4 sided 7"), "a 4 sided 7");
    }

    #[test]
    fn text_is_shown_as_it_is() {
        assert_eq!(text("a<b & 'c'"), "a&lt;b &amp; &#39;c&#39;");
    }
}
