//! Characters in columns: how wide they are, and which may be shown at all.

use unicode_width::UnicodeWidthChar;

/// Columns a text takes.
pub(super) fn columns(text: &str) -> usize {
    text.chars().map(wide).sum()
}

/// Columns a character takes; what isn't harmless is shown as one `\u{fffd}`.
pub(super) fn wide(c: char) -> usize {
    if is_harmless(c) {
        c.width().unwrap_or(1)
    } else {
        1
    }
}

/// The text in exactly so many columns, at the left; cut with `…` if it is longer.
pub(super) fn left(text: &str, width: usize) -> String {
    let text = cut(text, width);
    let room = width - columns(&text);
    text + &" ".repeat(room)
}

/// The text in exactly so many columns, at the right; cut with `…` if it is longer.
pub(super) fn right(text: &str, width: usize) -> String {
    let text = cut(text, width);
    " ".repeat(width - columns(&text)) + &text
}

pub(super) fn cut(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars() {
        let w = wide(c);
        if used + w + 1 > width {
            break;
        }
        used += w;
        out.push(c);
    }
    if width > 0 {
        out.push('…');
    }
    out
}

/// The text up to so many columns, and the rest.
pub(super) fn split_at_columns(text: &str, width: usize) -> (String, String) {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += wide(c);
        if used > width {
            return (text[..at].to_owned(), text[at..].to_owned());
        }
    }
    (text.to_owned(), String::new())
}

/// Whether a character neither moves the cursor nor changes the order or the
/// width of its neighbours.
pub(super) fn is_harmless(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{00ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
}

/// The ASCII character in the place of another, where only ASCII is shown. It is one for
/// one, so columns stay where they are.
pub(super) fn ascii(c: char) -> char {
    match c {
        'µ' | 'μ' => 'u',
        '·' | '–' | '—' | '─' => '-',
        '━' => '=',
        '×' => 'x',
        '…' => '~',
        '≥' => '>',
        '≤' => '<',
        '’' | '‘' => '\'',
        '“' | '”' => '"',
        '│' | '┤' => '|',
        '└' => '`',
        '├' | '┬' | '┼' => '+',
        '▁' => '_',
        '▂' | '▃' => '.',
        '▄' | '▅' => ':',
        '▆' | '▇' | '█' => '#',
        '░' => '.',
        _ => '?',
    }
}
