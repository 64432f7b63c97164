//! Whether an SVG is well-formed.

use report::svg::Picture;

/// Tags open and close in order, attributes are quoted, text holds no markup.
pub(crate) fn assert_well_formed(picture: &Picture) {
    let body = picture
        .svg
        .strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let mut rest = body.unwrap_or_else(|| panic!("{}: no declaration", picture.name));
    let mut open = Vec::new();
    while let Some(at) = rest.find('<') {
        assert!(!rest[..at].contains('>'), "{}: a lonely >", picture.name);
        let end = at + rest[at..].find('>').expect("a tag ends");
        let tag = &rest[at + 1..end];
        for nonsense in ["NaN", "inf"] {
            assert!(!tag.contains(nonsense), "{}: <{tag}>", picture.name);
        }
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        let name = tag
            .split([' ', '/'])
            .find(|word| !word.is_empty())
            .unwrap_or_default();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "{}", picture.name);
        } else if !tag.ends_with('/') {
            open.push(name);
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty(), "{}: {open:?} stay open", picture.name);
    let forbidden = |c: char| c.is_control() && c != '\n';
    assert!(!picture.svg.contains(forbidden), "{}", picture.name);
}
