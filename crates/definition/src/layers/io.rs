//! What tools may answer in two layers: the smaller number of each.

use jackline_engine::definition::{Io, OutputIo, ReadFileIo, ShellIo};

use super::Subject;
use super::join::{How, Joining};
use super::parts::Said;
use crate::words;

impl Joining {
    /// The bounds of both layers. What a layer does not say is the default, and
    /// loosens nothing.
    pub(super) fn join_io(&mut self, high: &Said<Io>, low: &Said<Io>, how: How) -> Said<Io> {
        let (above, below) = (numbers(high.what), numbers(low.what));
        let usual = numbers(Io::default());
        let mut kept = above;
        for (((kept, above), below), usual) in kept.iter_mut().zip(above).zip(below).zip(usual) {
            *kept = match how {
                _ if below == usual => above,
                How::Override => below,
                How::Tighten => above.min(below),
            };
        }
        let (own, said) = (high.what.output.relative_paths, low.what.output.relative_paths);
        let relative_paths = own && (said || how == How::Tighten);
        let kept = io(kept, relative_paths);
        let text = |io: &Io| words::io(io).unwrap_or_else(|| "`io`".to_owned());
        if how == How::Override && kept != high.what && high.what != Io::default() {
            self.replaced(Subject::Setting, text(&high.what), high.by, low.by);
        }
        if how == How::Tighten && kept != low.what && low.what != Io::default() {
            self.ignore(Subject::Setting, text(&low.what), low.by, high.by, "has smaller ones");
        }
        let by = if kept == high.what { high.by } else { low.by };
        Said { what: kept, by }
    }
}

/// Everything that is smaller where it is stricter.
fn numbers(io: Io) -> [u32; 6] {
    let ReadFileIo { max_lines, max_bytes, max_line_bytes } = io.read_file;
    let ShellIo { seconds, output_bytes } = io.shell;
    [max_lines, max_bytes, max_line_bytes, io.output.max_bytes, seconds, output_bytes]
}

fn io(numbers: [u32; 6], relative_paths: bool) -> Io {
    let [max_lines, read_bytes, max_line_bytes, max_bytes, seconds, output_bytes] = numbers;
    Io {
        read_file: ReadFileIo { max_lines, max_bytes: read_bytes, max_line_bytes },
        output: OutputIo { max_bytes, relative_paths },
        shell: ShellIo { seconds, output_bytes },
    }
}
