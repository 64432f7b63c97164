//! Figures for Prometheus: over HTTP in the format that the client asks for, or in a file that a collector reads
//! (node_exporter's `--collector.textfile.directory`).
//!
//! A command fills a [`Registry`], whose figures are atomics. Nothing here waits for the command,
//! and the command waits for no client.

mod format;
mod server;
pub(crate) mod trims;

use std::io::Write;
use std::path::Path;

use linux::files::replace_with;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use crate::console::Stream;
use crate::exit::Error;
use format::Format;

pub(crate) use server::Server;

/// Returns all figures in a format.
fn in_format(format: Format, registry: &Registry) -> String {
    match format {
        Format::OpenMetrics => text(registry),
        Format::Plain => classic(&text(registry)),
    }
}

/// Returns all figures as text of OpenMetrics.
pub(crate) fn text(registry: &Registry) -> String {
    let mut text = String::new();
    // Writing into a String can't fail.
    let _ = encode(&mut text, registry);
    text
}

/// The older format of Prometheus, the only one that node_exporter takes from a file. In it a
/// counter's family ends in `_total`, and there are neither units nor kinds such as `info`.
fn classic(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    let mut help = None;
    for line in open_metrics.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ');
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap_or((rest, "untyped"));
            let (end, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                "histogram" => ("", "histogram"),
                "gauge" => ("", "gauge"),
                _ => ("", "untyped"),
            };
            if let Some((_, words)) = help.take().filter(|(helped, _)| *helped == name) {
                text += &format!("# HELP {name}{end} {words}\n");
            }
            text += &format!("# TYPE {name}{end} {kind}\n");
        } else if !line.starts_with('#') {
            text += line;
            text.push('\n');
        }
    }
    text
}

/// Writes the figures to a file, or prints them as OpenMetrics if its name is `-`.
pub(crate) fn write(path: &Path, registry: &Registry) -> Result<(), Error> {
    match path.as_os_str() == "-" {
        true => Stream::Out.print(&text(registry)),
        false => write_textfile(path, registry)?,
    }
    Ok(())
}

/// Replaces a file by the figures at once, so that no reader sees half of them. They are in the
/// older format of Prometheus, which node_exporter takes.
pub(crate) fn write_textfile(path: &Path, registry: &Registry) -> Result<(), Error> {
    let text = classic(&text(registry));
    let written = replace_with(path, 0o666, |file| file.write_all(text.as_bytes()));
    written.map_err(Error::unwritten(path))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use prometheus_client::metrics::counter::Counter;

    fn registry() -> Registry {
        let mut registry = Registry::default();
        let reads = Counter::<u64>::default();
        reads.inc_by(7);
        registry.register("reads", "Reads", reads);
        registry
    }

    #[test]
    fn a_file_is_replaced_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trimbench.prom");
        fs::write(&path, "old").unwrap();
        write_textfile(&path, &registry()).unwrap();
        let found = fs::read_to_string(&path).unwrap();
        let expected = "# HELP reads_total Reads.\n# TYPE reads_total counter\nreads_total 7\n";
        assert_eq!(found, expected);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let nowhere = folder.path().join("none/trimbench.prom");
        assert!(write_textfile(&nowhere, &registry()).is_err());
    }
}
