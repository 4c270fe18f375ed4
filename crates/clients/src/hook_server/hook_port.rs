//! Reads a payload from the client and prints the answer.

use std::io::{self, Read as _, Write as _};

/// The connection to a client. Two threads share it, and only one of them prints.
pub trait HookPort: Send + Sync {
    /// Reads the payload to its end, but no more than `bytes_max`.
    fn read(&self, bytes_max: u64) -> io::Result<Vec<u8>>;

    /// Prints and flushes the answer.
    fn print(&self, text: &str) -> io::Result<()>;

    /// Prints the reason of a refusal, if possible.
    fn print_error(&self, text: &str);

    /// Ends the process. Only the deadline thread calls this.
    fn exit(&self, code: u8);
}

/// The standard streams of this process.
#[derive(Debug, Clone, Copy)]
pub struct ProcessPort;

impl HookPort for ProcessPort {
    fn read(&self, bytes_max: u64) -> io::Result<Vec<u8>> {
        let mut input = Vec::new();
        io::stdin().lock().take(bytes_max).read_to_end(&mut input)?;
        Ok(input)
    }

    fn print(&self, text: &str) -> io::Result<()> {
        let mut output = io::stdout().lock();
        output.write_all(text.as_bytes()).and_then(|()| output.flush())
    }

    fn print_error(&self, text: &str) {
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }

    fn exit(&self, code: u8) {
        std::process::exit(code.into());
    }
}
