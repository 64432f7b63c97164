//! The format of figures that a client asks for in its `Accept` header.

/// A text format of Prometheus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// The older one, which every client reads.
    Plain,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl Format {
    /// The one that the head of a request prefers. Prometheus names both with weights; a client that
    /// names neither, such as curl, has the older one, as Prometheus' own libraries do it.
    pub(super) fn preferred(head: &str) -> Format {
        let accepted = head.lines().filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("accept").then_some(value)
        });
        let ranges: Vec<(String, f64)> = accepted
            .flat_map(|value| value.split(','))
            .map(range)
            .collect();
        let weight = |wanted: &str| {
            let own = ranges.iter().filter(|one| one.0 == wanted);
            own.map(|one| one.1).fold(0.0, f64::max)
        };
        let open = weight("application/openmetrics-text");
        match open > 0.0 && open >= weight("text/plain") {
            true => Format::OpenMetrics,
            false => Format::Plain,
        }
    }

    /// Its content type.
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Format::Plain => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// `text/plain;version=0.0.4;q=0.3` as a type and its weight; 0 for a weight that is no number.
fn range(text: &str) -> (String, f64) {
    let mut parts = text.split(';').map(str::trim);
    let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
    let weight = parts.find_map(|one| one.strip_prefix("q=").or_else(|| one.strip_prefix("Q=")));
    (
        kind,
        weight.map_or(1.0, |weight| weight.parse().unwrap_or(0.0)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preferred(accept: &str) -> Format {
        Format::preferred(&format!(
            "GET /metrics HTTP/1.1\r\nHost: x\r\n{accept}\r\n\r\n"
        ))
    }

    #[test]
    fn the_format_is_the_one_with_the_larger_weight() {
        for (accept, expected) in [
            ("", Format::Plain),
            ("Accept: */*", Format::Plain),
            ("Accept: text/html", Format::Plain),
            ("Accept: application/openmetrics-text", Format::OpenMetrics),
            // Prometheus 2.x and 3.x, with and without OpenMetrics first.
            (
                "accept: application/openmetrics-text;version=1.0.0;q=0.5,\
                 application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
                Format::OpenMetrics,
            ),
            (
                "Accept: text/plain; version=0.0.4; q=0.6, application/openmetrics-text; q=0.3",
                Format::Plain,
            ),
            ("Accept: application/openmetrics-text;q=0", Format::Plain),
            ("Accept: application/openmetrics-text;q=high", Format::Plain),
        ] {
            assert_eq!(preferred(accept), expected, "{accept}");
        }
    }
}
