//! Reads files that a person named, or that another user or program may have put there.

use std::fs::{self, FileType, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

/// Reads a regular file of at most `bytes_max` bytes. It never blocks on a pipe or a device, and
/// never reads without end.
pub fn read_regular(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    ensure_regular(path)?;
    // Another program may have replaced the file by a pipe just now.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    ensure_regular_type(file.metadata()?.file_type())?;
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        let text = format!("it has more than {bytes_max} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

/// Fails if the path does not lead to a regular file. The error says what it is, and what to give
/// instead. Nothing is opened, so this never blocks.
pub fn ensure_regular(path: &Path) -> io::Result<()> {
    ensure_regular_type(fs::metadata(path)?.file_type())
}

fn ensure_regular_type(kind: FileType) -> io::Result<()> {
    if kind.is_file() {
        return Ok(());
    }
    let is = if kind.is_dir() {
        "a directory"
    } else if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    };
    let text = format!("it is {is}; give the path of a regular file instead");
    Err(io::Error::new(io::ErrorKind::InvalidInput, text))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use rustix::fs::{CWD, FileType as NodeType, Mode, mknodat};

    use super::*;

    #[test]
    fn only_a_regular_file_is_read_and_nothing_blocks() {
        let root = tempfile::tempdir().unwrap();
        let (pipe, socket, file) =
            (root.path().join("pipe"), root.path().join("socket"), root.path().join("file"));
        mknodat(CWD, &pipe, NodeType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let _listener = UnixListener::bind(&socket).unwrap();
        for (path, is) in [
            (root.path(), "a directory"),
            (&pipe, "a pipe"),
            (&socket, "a socket"),
            (Path::new("/dev/null"), "a device"),
        ] {
            let error = read_regular(path, 10).unwrap_err().to_string();
            assert_eq!(error, format!("it is {is}; give the path of a regular file instead"));
        }
        fs::write(&file, "ten bytes!").unwrap();
        assert_eq!(read_regular(&file, 10).unwrap(), b"ten bytes!");
        assert_eq!(read_regular(&file, 9).unwrap_err().to_string(), "it has more than 9 bytes");
    }
}
