//! The process that sends notifications. The gate starts it and does not wait for it.
//!
//! ```text
//! notify/0 … notify/7    locked by a sending process; limits how many run at a time
//! notify/broken          the last broken guard that was notified
//! notify/failed          failures, for the next record
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

use super::{NotificationDelivery, PersonNotification, SendJob, shorten};
use crate::bounded_child::{BoundedChild, OutputEnd, OutputStream};
use crate::redact::redact_text;
use jackline_host::clock::{from_system, now};

/// The time limit for a command.
const COMMAND_LIMIT: Duration = Duration::from_secs(30);

/// The time limit for a webhook request: first by curl, then by this process.
const POST_SECONDS: u64 = 15;
const POST_LIMIT: Duration = Duration::from_secs(POST_SECONDS + 5);

/// The time that a program gets to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);

/// The largest number of sending processes on one machine.
const SLOTS_MAX: usize = 8;

/// How long the same broken guard is not notified again.
const REPEAT_PAUSE_MS: u64 = 10 * 60 * 1000;

/// The largest input of a sending process.
const POST_BYTES_MAX: u64 = 256 << 10;

/// The largest size of the file with failures.
const FAILURES_BYTES_MAX: u64 = 32 << 10;

/// How much output of a program is stored.
const OUTPUT_BYTES_MAX: usize = 1 << 10;

/// A notification that was not delivered.
#[derive(Serialize, Deserialize)]
struct DeliveryFailure {
    reason: String,
}

/// Sends the notifications that `input` describes. A runtime starts a process for this, and the
/// process outlives the runtime.
pub fn deliver(input: &mut dyn Read) -> io::Result<()> {
    // Signals for the starting process must not reach this one.
    let _ = rustix::process::setsid();
    let mut bytes = Vec::new();
    input.take(POST_BYTES_MAX).read_to_end(&mut bytes)?;
    let SendJob { home, deliveries } = serde_json::from_slice(&bytes)?;
    let directory = home.map(|home| home.join("notify"));
    // Without a state home, slots can't be counted. Sending matters more than the limit.
    let slot = directory.as_deref().map(take_slot);
    if let (Some(directory), Some(Ok(None))) = (&directory, &slot) {
        let count = deliveries.len();
        return store_failure(
            directory,
            &format!(
                "{SLOTS_MAX} processes are sending notifications already; {count} more were not sent"
            ),
        );
    }
    for delivery in deliveries {
        if directory
            .as_deref()
            .is_some_and(|directory| was_sent_recently(directory, &delivery.notice))
        {
            continue;
        }
        for reason in send(&delivery) {
            let text = format!(
                "the notification `{}` was not sent: {reason}",
                delivery.notice.event.as_str()
            );
            if let Some(directory) = &directory {
                store_failure(directory, &text)?;
            }
        }
    }
    drop(slot);
    Ok(())
}

/// Takes a slot for sending; `None` if all are taken.
fn take_slot(place: &Path) -> io::Result<Option<File>> {
    DirBuilder::new().recursive(true).mode(0o700).create(place)?;
    for number in 0..SLOTS_MAX {
        let path = place.join(number.to_string());
        let slot =
            OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
        if slot.try_lock().is_ok() {
            return Ok(Some(slot));
        }
    }
    Ok(None)
}

/// Whether this broken guard was notified recently. Many events in a row may meet the same fault.
fn was_sent_recently(place: &Path, notice: &PersonNotification) -> bool {
    if notice.event != Occasion::GuardBroken {
        return false;
    }
    let stamp = place.join("broken");
    let what = (&notice.session, &notice.text, &notice.why);
    let digest = Digest::of(format!("{what:?}").as_bytes()).to_string();
    let at = fs::metadata(&stamp).and_then(|found| found.modified()).map(from_system);
    let same = fs::read_to_string(&stamp).is_ok_and(|stored| stored == digest);
    if same && at.is_ok_and(|at| now().wall.ms_since(at) < REPEAT_PAUSE_MS) {
        return true;
    }
    let written =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(stamp);
    let _ = written.and_then(|mut file| file.write_all(digest.as_bytes()));
    false
}

/// Sends a notification to all its receivers at the same time, and returns the errors.
fn send(delivery: &NotificationDelivery) -> Vec<String> {
    let notice = &delivery.notice;
    let command = delivery.command.as_ref().map(|line| {
        let what = format!("`{}`", shorten(line, 60));
        (what, start_command(line, notice), COMMAND_LIMIT)
    });
    let post = delivery
        .webhook
        .as_ref()
        .map(|address| (host(address), start_post(address, notice), POST_LIMIT));
    let started: Vec<_> = [post, command].into_iter().flatten().collect();
    started
        .into_iter()
        .filter_map(|(what, running, limit)| wait_for_end(&what, running, limit))
        .collect()
}

/// Waits for a program to end, and returns an error if it failed.
fn wait_for_end(what: &str, running: io::Result<BoundedChild>, limit: Duration) -> Option<String> {
    let mut running = match running {
        Ok(running) => running,
        Err(error) => return Some(format!("can't start {what}: {error}")),
    };
    match running.wait(limit) {
        Ok(Some(status)) if status.success() => None,
        Ok(Some(status)) => {
            let output = error_suffix(&running.take_outputs());
            Some(format!("{what} ended with {status}{output}"))
        }
        Ok(None) => {
            let output = error_suffix(&running.end(GRACE));
            Some(format!("{what} took longer than {} s{output}", limit.as_secs()))
        }
        Err(error) => Some(format!("{what} can't be waited for: {error}")),
    }
}

fn error_suffix(outputs: &[Vec<u8>]) -> String {
    let text = String::from_utf8_lossy(outputs.first().map_or(&[], Vec::as_slice)).into_owned();
    let text = redact_text(&text).unwrap_or(text);
    if text.trim().is_empty() { String::new() } else { format!(": {}", shorten(text.trim(), 200)) }
}

/// Starts a program with `input` on its standard input, and stores the end of its error output.
fn start(mut command: Command, input: &[u8]) -> io::Result<BoundedChild> {
    let (pipe, stderr) = io::pipe()?;
    let (stdin, mut writer) = io::pipe()?;
    command.stdin(stdin).stdout(Stdio::null()).stderr(stderr);
    let running = BoundedChild::start(
        command,
        vec![OutputStream::new(pipe, OutputEnd::Tail(OUTPUT_BYTES_MAX))],
    )?;
    // The input fits into the pipe, so this does not wait for a program that does not read.
    let _ = writer.write_all(input);
    Ok(running)
}

fn start_command(line: &str, notice: &PersonNotification) -> io::Result<BoundedChild> {
    let mut command = Command::new("sh");
    let workspace = notice.workspace.as_deref().map(Path::new).filter(|path| path.is_dir());
    command.arg("-c").arg(line).current_dir(workspace.unwrap_or(Path::new("/")));
    command.env("JACKLINE_EVENT", notice.event.as_str());
    command.env("JACKLINE_TEXT", &notice.text).env("JACKLINE_SESSION", &notice.session);
    start(command, &serde_json::to_vec(notice)?)
}

/// Passes the address on the standard input too. It may be a secret, and every user of a machine
/// can read the command lines of processes.
fn start_post(address: &str, notice: &PersonNotification) -> io::Result<BoundedChild> {
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let body = serde_json::to_string(notice)?;
    let curl_config = format!(
        "url = \"{}\"\ndata-raw = \"{}\"\nheader = \"Content-Type: application/json\"\n",
        quoted(address),
        quoted(&body)
    );
    let mut curl = Command::new("curl");
    curl.args(["-q", "--silent", "--show-error", "--fail", "--globoff", "--output", "/dev/null"]);
    curl.args(["--proto", "=http,https", "--max-time", &POST_SECONDS.to_string()]);
    curl.args(["--config", "-"]).current_dir("/");
    start(curl, curl_config.as_bytes())
}

/// Stores a failure for the next record.
fn store_failure(place: &Path, reason: &str) -> io::Result<()> {
    let path = place.join("failed");
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    if file.metadata()?.len() < FAILURES_BYTES_MAX {
        let mut line = serde_json::to_vec(&DeliveryFailure { reason: shorten(reason, 400) })?;
        line.push(b'\n');
        file.write_all(&line)?;
    }
    Ok(())
}

/// Takes the failures since the last call.
pub(crate) fn take_failures(home: &Path) -> Vec<String> {
    let failed = home.join("notify").join("failed");
    let mine = failed.with_file_name(format!("failed.{}", std::process::id()));
    if fs::rename(&failed, &mine).is_err() {
        return Vec::new();
    }
    let text = fs::read_to_string(&mine).unwrap_or_default();
    let _ = fs::remove_file(&mine);
    let reason = |line: &str| serde_json::from_str(line).ok().map(|it: DeliveryFailure| it.reason);
    text.lines().filter_map(reason).collect()
}
