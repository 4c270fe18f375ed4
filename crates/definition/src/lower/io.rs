//! How much of what tools answer is shown.

use jackline_engine::definition::{Io, OutputIo, ReadFileIo, ShellIo};

use crate::keys::{self, Keys, Takes};
use crate::reader::Reader;
use crate::yaml::Node;

/// Reads `io`.
pub(super) fn lower(node: &Node, reader: &mut Reader<'_>) -> Io {
    let mut io = Io::default();
    for (key, node) in reader.fields(node, &keys::IO) {
        match key {
            "read_file" => read_file(node, &mut io.read_file, reader),
            "output" => output(node, &mut io.output, reader),
            _ => shell(node, &mut io.shell, reader),
        }
    }
    io
}

fn read_file(node: &Node, io: &mut ReadFileIo, reader: &mut Reader<'_>) {
    for (key, node) in reader.fields(node, &keys::IO_READ_FILE) {
        let slot = match key {
            "max_lines" => &mut io.max_lines,
            "max_bytes" => &mut io.max_bytes,
            _ => &mut io.max_line_bytes,
        };
        bounded(key, node, &keys::IO_READ_FILE, slot, reader);
    }
}

fn output(node: &Node, io: &mut OutputIo, reader: &mut Reader<'_>) {
    for (key, node) in reader.fields(node, &keys::IO_OUTPUT) {
        if key == "relative_paths" {
            let flag = reader.flag(node, "`io.output.relative_paths`");
            io.relative_paths = flag.unwrap_or(io.relative_paths);
        } else {
            bounded(key, node, &keys::IO_OUTPUT, &mut io.max_bytes, reader);
        }
    }
}

fn shell(node: &Node, io: &mut ShellIo, reader: &mut Reader<'_>) {
    for (key, node) in reader.fields(node, &keys::IO_SHELL) {
        let slot = if key == "seconds" { &mut io.seconds } else { &mut io.output_bytes };
        bounded(key, node, &keys::IO_SHELL, slot, reader);
    }
}

/// A number within the range that its key takes.
pub(super) fn bounded(
    key: &str,
    node: &Node,
    keys: &Keys,
    slot: &mut u32,
    reader: &mut Reader<'_>,
) {
    let what = format!("`{}.{key}`", keys.of.trim_matches('`'));
    let Some(number) = reader.count::<u64>(node, &what) else { return };
    let takes = keys.known.iter().find(|known| known.name == key).map(|known| &known.takes);
    let Some(Takes::Count(least, most)) = takes else { return };
    match u32::try_from(number).ok().filter(|_| (*least..=*most).contains(&number)) {
        Some(number) => *slot = number,
        None => {
            let hint = format!("from {least} to {most}");
            reader.complain_hint(node.at, format!("{what} can't be {number}"), hint);
        }
    }
}
