//! The process that sends notices: what the gate starts and does not wait for.
//!
//! ```text
//! notify/0 … notify/7    locked by whoever sends; there are no more at a time
//! notify/broken          the last broken guard that somebody was told of
//! notify/failed          what could not be sent, for the next record
//! ```

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use jackline_definition::words::host;
use jackline_engine::Digest;
use jackline_engine::definition::Occasion;
use serde::{Deserialize, Serialize};

use super::{Delivery, Notice, Post, short};
use crate::child::{Keep, Running, Stream};
use crate::redact::redact_text;
use jackline_host::clock::{from_system, now};

/// How long a command may take.
const COMMAND_LIMIT: Duration = Duration::from_secs(30);

/// How long a post may take, by its own count and then by ours.
const POST_SECONDS: u64 = 15;
const POST_LIMIT: Duration = Duration::from_secs(POST_SECONDS + 5);

/// How long something may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(2);

/// How many processes send at a time, on one machine.
const SLOTS: usize = 8;

/// So long nobody is told again of the same broken guard.
const SAME_MS: u64 = 10 * 60 * 1000;

/// The most that is read of what there is to do.
const POST_BYTES_MAX: u64 = 256 << 10;

/// How much is kept of what failed.
const FAILED_BYTES_MAX: u64 = 32 << 10;

/// How much of an output is kept.
const OUTPUT_BYTES_MAX: usize = 1 << 10;

/// A notice that did not arrive.
#[derive(Serialize, Deserialize)]
struct Failure {
    reason: String,
}

/// Sends the notices that are described on `input`. This is what the process
/// does that a runtime starts; it outlives the one who started it.
pub fn deliver(input: &mut dyn Read) -> io::Result<()> {
    // Signals to whoever started this are not meant for it.
    let _ = rustix::process::setsid();
    let mut bytes = Vec::new();
    input.take(POST_BYTES_MAX).read_to_end(&mut bytes)?;
    let Post { home, deliveries } = serde_json::from_slice(&bytes)?;
    let place = home.map(|home| home.join("notify"));
    // Without a place nobody can count, and being told matters more.
    let slot = place.as_deref().map(take_slot);
    if let (Some(place), Some(Ok(None))) = (&place, &slot) {
        let count = deliveries.len();
        return fail(place, &format!("{SLOTS} notices are under way; {count} more were not sent"));
    }
    for delivery in deliveries {
        if place.as_deref().is_some_and(|place| was_told(place, &delivery.notice)) {
            continue;
        }
        for reason in send(&delivery) {
            let text = format!("nobody was told of `{}`: {reason}", delivery.notice.event.word());
            if let Some(place) = &place {
                fail(place, &text)?;
            }
        }
    }
    drop(slot);
    Ok(())
}

/// A place among those who send; none where all are taken.
fn take_slot(place: &Path) -> io::Result<Option<File>> {
    DirBuilder::new().recursive(true).mode(0o700).create(place)?;
    for number in 0..SLOTS {
        let path = place.join(number.to_string());
        let slot =
            OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
        if slot.try_lock().is_ok() {
            return Ok(Some(slot));
        }
    }
    Ok(None)
}

/// Whether somebody was told of this broken guard a moment ago. One event
/// after the other meets it.
fn was_told(place: &Path, notice: &Notice) -> bool {
    if notice.event != Occasion::GuardBroken {
        return false;
    }
    let stamp = place.join("broken");
    let what = (&notice.session, &notice.text, &notice.why);
    let digest = Digest::of(format!("{what:?}").as_bytes()).to_string();
    let at = fs::metadata(&stamp).and_then(|found| found.modified()).map(from_system);
    let same = fs::read_to_string(&stamp).is_ok_and(|known| known == digest);
    if same && at.is_ok_and(|at| now().wall.ms_since(at) < SAME_MS) {
        return true;
    }
    let written =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(stamp);
    let _ = written.and_then(|mut file| file.write_all(digest.as_bytes()));
    false
}

/// Sends a notice every way it takes, at once, and gives what went wrong.
fn send(delivery: &Delivery) -> Vec<String> {
    let notice = &delivery.notice;
    let command = delivery.command.as_ref().map(|line| {
        let what = format!("`{}`", short(line, 60));
        (what, start_command(line, notice), COMMAND_LIMIT)
    });
    let post = delivery
        .webhook
        .as_ref()
        .map(|address| (host(address), start_post(address, notice), POST_LIMIT));
    let started: Vec<_> = [post, command].into_iter().flatten().collect();
    started.into_iter().filter_map(|(what, running, limit)| ended(&what, running, limit)).collect()
}

/// Waits for the end, and says what was wrong with it.
fn ended(what: &str, running: io::Result<Running>, limit: Duration) -> Option<String> {
    let mut running = match running {
        Ok(running) => running,
        Err(error) => return Some(format!("can't start {what}: {error}")),
    };
    match running.wait(limit) {
        Ok(Some(status)) if status.success() => None,
        Ok(Some(status)) => {
            let said = said(&running.outputs());
            Some(format!("{what} ended with {status}{said}"))
        }
        Ok(None) => {
            let said = said(&running.end(GRACE));
            Some(format!("{what} took longer than {} s{said}", limit.as_secs()))
        }
        Err(error) => Some(format!("{what} can't be waited for: {error}")),
    }
}

fn said(outputs: &[Vec<u8>]) -> String {
    let text = String::from_utf8_lossy(outputs.first().map_or(&[], Vec::as_slice)).into_owned();
    let text = redact_text(&text).unwrap_or(text);
    if text.trim().is_empty() { String::new() } else { format!(": {}", short(text.trim(), 200)) }
}

/// A program that reads `input`, with its complaints kept.
fn start(mut command: Command, input: &[u8]) -> io::Result<Running> {
    let (pipe, stderr) = io::pipe()?;
    let (stdin, mut writer) = io::pipe()?;
    command.stdin(stdin).stdout(Stdio::null()).stderr(stderr);
    let running = Running::start(command, vec![Stream::new(pipe, Keep::Tail(OUTPUT_BYTES_MAX))])?;
    // It fits into the pipe, so nobody waits for one who does not read.
    let _ = writer.write_all(input);
    Ok(running)
}

fn start_command(line: &str, notice: &Notice) -> io::Result<Running> {
    let mut command = Command::new("sh");
    let workspace = notice.workspace.as_deref().map(Path::new).filter(|path| path.is_dir());
    command.arg("-c").arg(line).current_dir(workspace.unwrap_or(Path::new("/")));
    command.env("JACKLINE_EVENT", notice.event.word());
    command.env("JACKLINE_TEXT", &notice.text).env("JACKLINE_SESSION", &notice.session);
    start(command, &serde_json::to_vec(notice)?)
}

/// The address goes in by the standard input too: it may be a secret, and
/// everybody on a machine can list the words of a command.
fn start_post(address: &str, notice: &Notice) -> io::Result<Running> {
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let body = serde_json::to_string(notice)?;
    let told = format!(
        "url = \"{}\"\ndata-raw = \"{}\"\nheader = \"Content-Type: application/json\"\n",
        quoted(address),
        quoted(&body)
    );
    let mut curl = Command::new("curl");
    curl.args(["-q", "--silent", "--show-error", "--fail", "--globoff", "--output", "/dev/null"]);
    curl.args(["--proto", "=http,https", "--max-time", &POST_SECONDS.to_string()]);
    curl.args(["--config", "-"]).current_dir("/");
    start(curl, told.as_bytes())
}

/// Leaves a failure for the next record.
fn fail(place: &Path, reason: &str) -> io::Result<()> {
    let path = place.join("failed");
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    if file.metadata()?.len() < FAILED_BYTES_MAX {
        let mut line = serde_json::to_vec(&Failure { reason: short(reason, 400) })?;
        line.push(b'\n');
        file.write_all(&line)?;
    }
    Ok(())
}

/// What could not be sent, since this was last asked.
pub(crate) fn take_undelivered(home: &Path) -> Vec<String> {
    let failed = home.join("notify").join("failed");
    let mine = failed.with_file_name(format!("failed.{}", std::process::id()));
    if fs::rename(&failed, &mine).is_err() {
        return Vec::new();
    }
    let text = fs::read_to_string(&mine).unwrap_or_default();
    let _ = fs::remove_file(&mine);
    let reason = |line: &str| serde_json::from_str(line).ok().map(|it: Failure| it.reason);
    text.lines().filter_map(reason).collect()
}
