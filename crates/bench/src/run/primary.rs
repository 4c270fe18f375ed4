//! Measures how soon the next model answers if the first one does not.

use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

use jackline_model::Provider;
use jackline_model::scripted::{ModelScript, ScriptStep};
use jackline_supervisor::{EngineKind, EngineSpec, RemoteModel, RunEvent};

use super::{REQUIRED_FILE, completing_steps, run_task, scripted_engine};
use crate::BenchError;
use crate::limits::Row;
use crate::report::BenchReport;

/// How long the first model may take.
const TIMEOUT: Duration = Duration::from_secs(2);

pub(super) fn run(report: &mut BenchReport) -> Result<(), BenchError> {
    // The kernel accepts connections, but no program answers.
    let silent = TcpListener::bind("127.0.0.1:0")?;
    let kind = EngineKind::Model(RemoteModel {
        provider: Provider::OpenAiChat,
        model: "silent".to_owned(),
        url: Some(format!("http://{}/v1", silent.local_addr()?)),
        key_env: None,
        timeout: TIMEOUT,
    });
    let label = "silent".to_owned();
    let silent_engine = EngineSpec { label, kind, when: Vec::new(), budget: None, window: None };
    let busy = scripted_engine(ModelScript::new([ScriptStep::fail(529)]).repeating());
    let silent_rows =
        (Row("run: a silent model, next answer"), Row("run: a silent model, one change"));
    let busy_rows = (Row("run: a busy model, next answer"), Row("run: a busy model, one change"));
    for ((answer, change), engine) in [(silent_rows, silent_engine), (busy_rows, busy)] {
        let directory = tempfile::tempdir()?;
        let (seconds, changes) = measure(directory.path(), engine)?;
        let context = format!("{seconds:.2} s, its timeout is {} s", TIMEOUT.as_secs());
        let ratio = seconds / TIMEOUT.as_secs_f64();
        report.add(answer, ratio, context);
        report.add_claim(change, changes == 1, format!("{changes} changes"));
    }
    Ok(())
}

/// The seconds from the first request to the first answer, and how often the model changed.
fn measure(place: &Path, first: EngineSpec) -> Result<(f64, usize), BenchError> {
    let definition = format!(
        "models: [{{ provider: scripted, model: second }}]\ncompletion: {{ files: [{REQUIRED_FILE}] }}\n"
    );
    let (mut first_request, mut first_answer, mut changes) = (None, None, 0);
    let second = [("second", ModelScript::new(completing_steps()))];
    let stop = run_task(place, &definition, first, &second, &mut |event| match event {
        RunEvent::Asking { .. } => {
            first_request.get_or_insert_with(Instant::now);
        }
        RunEvent::ToolCall { .. } => {
            first_answer.get_or_insert_with(Instant::now);
        }
        RunEvent::EngineChanged { .. } => changes += 1,
        _ => {}
    })?;
    match (first_request, first_answer) {
        (Some(first_request), Some(first_answer)) if stop == "OBJECTIVE_ACHIEVED" => {
            Ok((first_answer.duration_since(first_request).as_secs_f64(), changes))
        }
        _ => Err(format!("no model answered; stop code: {stop}").into()),
    }
}
