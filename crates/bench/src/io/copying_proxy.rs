//! A minimal proxy: two threads copy the bytes, one in each direction.

use std::io::{self, Read, Write};
use std::process::{Command, Stdio};

/// Copies between the parent process and a server until one of them closes its stream.
pub(crate) fn serve(server: &str) -> io::Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    let mut child = command.arg(server).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let missing = || io::Error::other("the server has no streams");
    let to = child.stdin.take().ok_or_else(missing)?;
    let from = child.stdout.take().ok_or_else(missing)?;
    let sends = std::thread::spawn(move || copy(io::stdin(), to));
    copy(from, io::stdout())?;
    sends.join().unwrap_or(Ok(()))?;
    child.wait().map(|_| ())
}

fn copy(mut from: impl Read, mut to: impl Write) -> io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = from.read(&mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        to.write_all(buffer.get(..read).unwrap_or_default())?;
        to.flush()?;
    }
}
