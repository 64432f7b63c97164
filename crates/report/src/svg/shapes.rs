//! Elements of SVG that all pictures are made of. Sizes are in px.

use crate::html::escape::text;

/// A whole picture with its XML declaration: a title for screen readers, a heading at
/// `left`, and the body.
pub(crate) fn document(
    size: [f64; 2],
    title: &str,
    left: f64,
    heading: &str,
    body: &str,
) -> String {
    let [wide, high] = size;
    let heading = format!(
        "<text x=\"{left}\" y=\"18\" font-size=\"14\" font-weight=\"bold\">{}</text>",
        text(heading)
    );
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {wide:.0} {high:.0}\" width=\"{wide:.0}\" \
         height=\"{high:.0}\" role=\"img\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>{}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{heading}\n{body}</svg>\n",
        text(title)
    )
}

/// A picture without the declaration that only a file of its own has.
pub(crate) fn within_a_page(document: &str) -> &str {
    document.split_once("?>\n").map_or("", |(_, svg)| svg)
}

/// A rectangle; `more` is further attributes, at least its `fill`.
pub(crate) fn rect([x, y]: [f64; 2], [wide, high]: [f64; 2], more: &str) -> String {
    format!("<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{wide:.2}\" height=\"{high:.2}\" {more}/>")
}

/// Text; `more` is further attributes.
pub(crate) fn label([x, y]: [f64; 2], more: &str, words: &str) -> String {
    let words = text(words);
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" {more}>{words}</text>")
}
