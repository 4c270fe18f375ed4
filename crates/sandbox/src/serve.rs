//! Reads messages of the host and answers them, until the host closes the connection.

use std::io::{self, BufRead, Write};

use jackline_sandbox_host::protocol::{CallAnswer, FromWorker, HostRequest, ToWorker, VERSION};

use crate::check::check;
use crate::confine::limit_cpu_time;
use crate::run::run;

/// How many seconds a check may take.
const CHECK_SECONDS_MAX: u64 = 10;

/// The connection to the host.
pub(crate) struct HostConnection<R, W> {
    from: R,
    to: W,
}

/// Serves the host until it closes its end.
pub fn serve(from: impl BufRead, to: impl Write) -> io::Result<()> {
    let mut wire = HostConnection { from, to };
    wire.send(&FromWorker::Ready { version: VERSION })?;
    while let Some(message) = wire.receive()? {
        let answer = match message {
            ToWorker::Check(asked) => {
                limit_cpu_time(CHECK_SECONDS_MAX)?;
                FromWorker::Objections(check(&asked.source, &asked.known))
            }
            ToWorker::Run(asked) => {
                limit_cpu_time(asked.limits.time_ms.div_ceil(1000).saturating_add(1))?;
                let memory = asked.limits.memory_bytes;
                monty_alloc::set_limit(Some(memory), false).map_err(io::Error::other)?;
                let ended = run(*asked, &mut wire)?;
                monty_alloc::set_limit(None, false).map_err(io::Error::other)?;
                FromWorker::Ended(Box::new(ended))
            }
            ToWorker::Answer(_) => {
                return Err(io::Error::other("unexpected answer: no call is open"));
            }
        };
        wire.send(&answer)?;
    }
    Ok(())
}

/// Sends the calls of a program to its host.
pub(crate) trait HostChannel {
    /// Sends a call and waits for the answer.
    fn ask(&mut self, wanted: HostRequest) -> io::Result<CallAnswer>;
}

impl<R: BufRead, W: Write> HostChannel for HostConnection<R, W> {
    fn ask(&mut self, wanted: HostRequest) -> io::Result<CallAnswer> {
        self.send(&FromWorker::Wants(wanted))?;
        match self.receive()? {
            Some(ToWorker::Answer(answer)) => Ok(answer),
            _ => Err(io::Error::other("the host did not answer")),
        }
    }
}

impl<R: BufRead, W: Write> HostConnection<R, W> {
    fn receive(&mut self) -> io::Result<Option<ToWorker>> {
        let mut line = Vec::new();
        if self.from.read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        Ok(Some(serde_json::from_slice(&line)?))
    }

    fn send(&mut self, message: &FromWorker) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.to.write_all(&line)?;
        self.to.flush()
    }
}
