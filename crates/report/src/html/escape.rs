//! What comes from a record can be hostile: names of files, drives and actors.

use serde::Serialize;

/// Text that is text wherever it stands in a page, also in a quoted attribute.
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
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => safe.push('\u{fffd}'),
            '\u{2028}' | '\u{2029}' => safe.push('\n'),
            c if c.is_control() && c != '\n' => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

/// JSON that nothing in it can end, inside a `<script>`: no `<`, `>` or `&`, and
/// neither of the two line ends that JSON allows in a string and JavaScript once didn't.
///
/// # Errors
/// If the value has keys that aren't strings.
pub(crate) fn json(value: &impl Serialize) -> serde_json::Result<String> {
    let raw = serde_json::to_string(value)?;
    let mut safe = String::with_capacity(raw.len());
    for c in raw.chars() {
        match c {
            // Outside of its strings JSON has none of them.
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                safe += &format!("\\u{:04x}", u32::from(c));
            }
            c => safe.push(c),
        }
    }
    Ok(safe)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn whatever_it_holds_json_comes_back_and_cannot_end_its_script(raw in any::<String>()) {
            let hostile = format!("{raw}</script><!--\u{2028}{raw}");
            let safe = json(&hostile).unwrap();
            let ends = ['<', '>', '&', '\u{2028}', '\u{2029}'];
            prop_assert!(!safe.contains(ends));
            prop_assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), hostile);
        }

        #[test]
        fn text_has_no_markup(raw in any::<String>()) {
            let safe = text(&raw);
            let markup = ['<', '>', '"', '\'', '\u{1b}', '\0'];
            prop_assert!(!safe.contains(markup));
        }
    }

    #[test]
    fn text_is_shown_as_it_is() {
        assert_eq!(text("a<b & 'c'"), "a&lt;b &amp; &#39;c&#39;");
    }
}
