//! Reads what the host says, and answers, until the host is gone.

use std::io::{self, BufRead, Write};

use jackline_sandbox_host::protocol::{Answer, FromWorker, ToWorker, VERSION, Wanted};

use crate::check::check;
use crate::confine::compute_at_most;
use crate::run::run;

/// How long a look at a program may take.
const CHECK_SECONDS_MAX: u64 = 10;

/// The two ends to the host.
pub(crate) struct Wire<R, W> {
    from: R,
    to: W,
}

/// Answers the host until it closes its end.
pub fn serve(from: impl BufRead, to: impl Write) -> io::Result<()> {
    let mut wire = Wire { from, to };
    wire.say(&FromWorker::Ready { version: VERSION })?;
    while let Some(message) = wire.hear()? {
        let answer = match message {
            ToWorker::Check(asked) => {
                compute_at_most(CHECK_SECONDS_MAX)?;
                FromWorker::Objections(check(&asked.source, &asked.known))
            }
            ToWorker::Run(asked) => {
                compute_at_most(asked.limits.time_ms.div_ceil(1000).saturating_add(1))?;
                let memory = asked.limits.memory_bytes;
                monty_alloc::set_limit(Some(memory), false).map_err(io::Error::other)?;
                let ended = run(*asked, &mut wire)?;
                monty_alloc::set_limit(None, false).map_err(io::Error::other)?;
                FromWorker::Ended(Box::new(ended))
            }
            ToWorker::Answer(_) => return Err(io::Error::other("nobody has asked")),
        };
        wire.say(&answer)?;
    }
    Ok(())
}

/// Whoever a program asks.
pub(crate) trait Asks {
    /// Asks, and waits for the answer.
    fn ask(&mut self, wanted: Wanted) -> io::Result<Answer>;
}

impl<R: BufRead, W: Write> Asks for Wire<R, W> {
    fn ask(&mut self, wanted: Wanted) -> io::Result<Answer> {
        self.say(&FromWorker::Wants(wanted))?;
        match self.hear()? {
            Some(ToWorker::Answer(answer)) => Ok(answer),
            _ => Err(io::Error::other("the host did not answer")),
        }
    }
}

impl<R: BufRead, W: Write> Wire<R, W> {
    fn hear(&mut self) -> io::Result<Option<ToWorker>> {
        let mut line = Vec::new();
        if self.from.read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        Ok(Some(serde_json::from_slice(&line)?))
    }

    fn say(&mut self, message: &FromWorker) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.to.write_all(&line)?;
        self.to.flush()
    }
}
