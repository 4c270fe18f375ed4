//! How soon the next model answers where the first does not.

use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

use jackline_model::Provider;
use jackline_model::scripted::{Script, Step};
use jackline_supervisor::{EngineKind, EngineSpec, Reach, Told};

use super::{WANTED, drive, plays, works};
use crate::Failure;
use crate::limits::Row;
use crate::report::Report;

/// How long the first model may take.
const TIMEOUT: Duration = Duration::from_secs(2);

pub(super) fn run(report: &mut Report) -> Result<(), Failure> {
    // Connections are taken by the system, and nobody ever answers.
    let silent = TcpListener::bind("127.0.0.1:0")?;
    let kind = EngineKind::Model(Reach {
        provider: Provider::OpenAiChat,
        model: "silent".to_owned(),
        url: Some(format!("http://{}/v1", silent.local_addr()?)),
        key_env: None,
        timeout: TIMEOUT,
    });
    let label = "silent".to_owned();
    let silent_engine = EngineSpec { label, kind, when: Vec::new(), budget: None, window: None };
    let busy = plays(Script::new([Step::fail(529)]).repeating());
    let silent_rows =
        (Row("run: a silent model, next answer"), Row("run: a silent model, one change"));
    let busy_rows = (Row("run: a busy model, next answer"), Row("run: a busy model, one change"));
    for ((answer, change), engine) in [(silent_rows, silent_engine), (busy_rows, busy)] {
        let place = tempfile::tempdir()?;
        let (seconds, changes) = measure(place.path(), engine)?;
        let context = format!("{seconds:.2} s, its time-out is {} s", TIMEOUT.as_secs());
        let ratio = seconds / TIMEOUT.as_secs_f64();
        report.add(answer, ratio, context);
        report.holds(change, changes == 1, format!("{changes} changes"));
    }
    Ok(())
}

/// Seconds from the first question to the first answer, and how often models changed.
fn measure(place: &Path, first: EngineSpec) -> Result<(f64, usize), Failure> {
    let definition = format!(
        "models: [{{ provider: scripted, model: second }}]\ncompletion: {{ files: [{WANTED}] }}\n"
    );
    let (mut asked, mut answered, mut changes) = (None, None, 0);
    let second = [("second", Script::new(works()))];
    let stop = drive(place, &definition, first, &second, &mut |told| match told {
        Told::Asking { .. } => {
            asked.get_or_insert_with(Instant::now);
        }
        Told::Called { .. } => {
            answered.get_or_insert_with(Instant::now);
        }
        Told::Changed { .. } => changes += 1,
        _ => {}
    })?;
    match (asked, answered) {
        (Some(asked), Some(answered)) if stop == "OBJECTIVE_ACHIEVED" => {
            Ok((answered.duration_since(asked).as_secs_f64(), changes))
        }
        _ => Err(format!("nobody answered; it ended as {stop}").into()),
    }
}
