//! Commands in a line of cron, a unit or a script, as far as they are clear without a shell.
//! These are lists, loops over words, variables with plain values, and the text after `-c`.

use std::collections::HashMap;

/// Words that stand before a command.
const KEYWORDS: [&str; 11] = [
    "do", "then", "else", "elif", "if", "while", "until", "!", "{", "time", "exec",
];

/// A command: its words, each as the values that it may have. `None`: the value isn't known.
pub(super) type Words = Vec<Option<Vec<String>>>;

/// The values of variables; `None` where they aren't known.
type Variables = HashMap<String, Option<Vec<String>>>;

/// The commands of a text.
pub(super) fn commands(text: &str) -> Vec<Words> {
    commands_with(text, &mut Variables::new())
}

fn commands_with(text: &str, variables: &mut Variables) -> Vec<Words> {
    let mut found = Vec::new();
    for mut tokens in lists(text) {
        let looped = tokens.iter().position(|word| word == "for");
        if let Some(at) = looped.filter(|at| tokens.get(at + 2).is_some_and(|word| word == "in")) {
            let values: Option<Vec<Vec<String>>> = tokens[at + 3..]
                .iter()
                .map(|word| expand(word, variables))
                .collect();
            variables.insert(tokens[at + 1].clone(), values.map(|all| all.concat()));
            continue;
        }
        // The shell reads them from a program's output.
        if let Some(at) = tokens.iter().position(|word| word == "read") {
            for name in tokens[at + 1..]
                .iter()
                .filter(|word| !word.starts_with('-'))
            {
                variables.insert(name.clone(), None);
            }
        }
        // The text that `sh`, `su` or `flock` runs.
        let is_c = |word: &String| word.starts_with('-') && word.ends_with('c') && word != "-exec";
        if let Some(at) = tokens.iter().position(is_c)
            && at + 1 < tokens.len()
        {
            let text = tokens.remove(at + 1);
            found.extend(commands_with(&inner(&text), variables));
        }
        let first = tokens
            .iter()
            .position(|word| !KEYWORDS.contains(&word.as_str()));
        let tokens = &tokens[first.unwrap_or(tokens.len())..];
        if let [only] = tokens
            && let Some((name, value)) = assignment(only)
        {
            let values = expand(value, variables);
            let words = values.map(|all| all.iter().flat_map(|one| words(one)).collect());
            variables.insert(name.to_owned(), words);
            continue;
        }
        let command: Words = tokens.iter().map(|word| expand(word, variables)).collect();
        if !command.is_empty() {
            found.push(command);
        }
    }
    found
}

fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let plain = !name.is_empty() && name.chars().all(is_name);
    plain.then_some((name, value))
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// The values of a word; `None` where a program or a variable that isn't known gives it.
fn expand(word: &str, variables: &Variables) -> Option<Vec<String>> {
    let bare = unquoted(word);
    let Some(start) = bare.find('$') else {
        return (!bare.contains('`')).then(|| vec![bare]);
    };
    let rest = &bare[start + 1..];
    let (name, end) = match rest.strip_prefix('{') {
        Some(inner) => (inner.split('}').next()?, rest.find('}')? + 1),
        None => {
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
            (&rest[..end], end)
        }
    };
    let values = variables.get(name)?.as_ref()?;
    let (head, tail) = (&bare[..start], &rest[end..]);
    (!tail.contains(['$', '`'])).then(|| {
        let whole = |value: &String| format!("{head}{value}{tail}");
        values.iter().map(whole).collect()
    })
}

fn unquoted(word: &str) -> String {
    word.chars()
        .filter(|c| !matches!(c, '"' | '\'' | '\\'))
        .collect()
}

/// A quoted text as the shell reads it that runs it.
fn inner(word: &str) -> String {
    match word.strip_prefix('\'') {
        Some(text) => text.trim_end_matches('\'').to_owned(),
        None => word.trim_matches('"').replace('\\', ""),
    }
}

/// The lists of words between `;`, `&&`, `||`, `|`, `(`, `)` and line ends, without comments.
fn lists(text: &str) -> Vec<Vec<String>> {
    let (mut all, mut list, mut word) = (Vec::new(), Vec::new(), String::new());
    let mut quote = None;
    let mut depth = 0_u32;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '"' | '\'' | '`') => quote = Some(c),
            (None | Some('"'), '\\') => {
                match chars.next() {
                    None | Some('\n') => {}
                    Some(next) => word.extend([c, next]),
                }
                continue;
            }
            (None, '(') if word.ends_with('$') || depth > 0 => depth += 1,
            (None, ')') if depth > 0 => depth -= 1,
            (None, '#') if depth == 0 && word.is_empty() => {
                while chars.peek().is_some_and(|next| *next != '\n') {
                    chars.next();
                }
                continue;
            }
            (None, '(') if !word.is_empty() => {}
            (None, ';' | '&' | '|' | '(' | ')' | '\n') if depth == 0 => {
                // A redirection: `2>&1`.
                if c == '&' && word.ends_with('>') {
                    word.push(c);
                    continue;
                }
                push(&mut list, &mut word);
                if !list.is_empty() {
                    all.push(std::mem::take(&mut list));
                }
                continue;
            }
            (None, c) if c.is_whitespace() && depth == 0 => {
                push(&mut list, &mut word);
                continue;
            }
            _ => {}
        }
        word.push(c);
    }
    push(&mut list, &mut word);
    if !list.is_empty() {
        all.push(list);
    }
    all
}

fn push(list: &mut Vec<String>, word: &mut String) {
    if !word.is_empty() {
        list.push(std::mem::take(word));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The commands with the values of their words; `?` for one that isn't known.
    fn read(text: &str) -> Vec<String> {
        let word =
            |word: &Option<Vec<String>>| word.as_ref().map_or("?".to_owned(), |all| all.join(","));
        let line = |words: Words| words.iter().map(word).collect::<Vec<_>>().join(" ");
        commands(text).into_iter().map(line).collect()
    }

    #[test]
    fn loops_and_variables_have_their_values() {
        assert_eq!(
            read("for m in / \"/home\" /srv; do nice fstrim -v \"$m\"; sleep 60; done"),
            ["nice fstrim -v /,/home,/srv", "sleep 60", "done"]
        );
        assert_eq!(
            read("#!/bin/sh\nMOUNTS='/ /var'\nfor m in ${MOUNTS} /x; do\n  fstrim $m # no\ndone"),
            ["fstrim /,/var,/x", "done"]
        );
        assert_eq!(
            read("A=/data\n/sbin/fstrim $A/x > /dev/null 2>&1"),
            ["/sbin/fstrim /data/x > /dev/null 2>&1"]
        );
    }

    #[test]
    fn the_text_that_another_shell_runs_is_read() {
        assert_eq!(
            read("M=/srv; sh -c \"fstrim / && fstrim $M\" | logger"),
            ["fstrim /", "fstrim /srv", "sh -c", "logger"]
        );
        assert_eq!(
            read("su root -c 'for m in / \"/home\"; do fstrim $m; done'")[0],
            "fstrim /,/home"
        );
        assert_eq!(
            read("bash -ec \"for m in /a /b; do fstrim \\\"\\$m\\\"; done\"")[0],
            "fstrim /a,/b"
        );
        assert_eq!(
            read("ionice -c 3 fstrim /; (fstrim /var)"),
            ["3", "ionice -c fstrim /", "fstrim /var"]
        );
    }

    #[test]
    fn values_of_programs_are_unknown() {
        assert_eq!(
            read("for m in $(findmnt -no TARGET; ls); do fstrim $m; done")[0],
            "fstrim ?"
        );
        assert_eq!(
            read("cat list | while read m; do fstrim \"$m\"; done")[2],
            "fstrim ?"
        );
        assert_eq!(read("fstrim `cat /etc/trim`"), ["fstrim ?"]);
        assert_eq!(read("fstrim $NOWHERE"), ["fstrim ?"]);
    }
}
