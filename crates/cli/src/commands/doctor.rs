//! `jackline doctor CLIENT`: whether the guard holds, tried out on the client itself.

use std::io;

use anstyle::{AnsiColor, Style};
use jackline_clients::installed::Installed;
use jackline_clients::settings_file::settings_files;
use jackline_setup::doctor::{Actor, Doctor, Latency, Line, Report, Standing, inspect};
use jackline_setup::install::{program_word, settings_of_project};
use jackline_setup::live::LiveError;
use serde_json::json;

use crate::args::DoctorArgs;
use crate::exit::Exit;
use crate::terminal::{dim, fail, here, note, plain, say, say_json, styled, table, thousandth};

/// How much is shown of what was seen.
const DETAIL_MAX: usize = 400;

pub(crate) fn run(args: &DoctorArgs) -> Exit {
    match examine(args) {
        Ok((client, report)) => {
            if args.json {
                say_json(as_json(&client, &report));
            } else {
                show(&report);
            }
            match report.standing() {
                Standing::Closed => Exit::Fine,
                Standing::Open => Exit::No,
                Standing::Unproven => Exit::Broken,
            }
        }
        Err(error @ LiveError::Client(_)) => fail(Exit::Usage, error),
        Err(error) => fail(Exit::Broken, error),
    }
}

fn examine(args: &DoctorArgs) -> Result<(Installed, Report), LiveError> {
    let client = Installed::find(args.client, args.client_program.as_deref())?;
    let start = |source| LiveError::Start { program: "jackline".into(), source };
    let jackline = std::env::current_exe().map_err(start)?;
    let jackline = program_word(&jackline).map_err(|error| start(io::Error::other(error)))?;
    let name = client.program.display();
    note(dim(format!("{} {}, {name}", args.client.title, client.version)));
    let doctor = Doctor { client: &client, jackline: &jackline };
    let mut report = doctor.examine(|what| note(dim(format!("trying: {what}"))))?;
    let files = settings_files(&here(), args.client);
    let of_project = settings_of_project(&here(), args.client);
    report.lines.extend(inspect(
        args.client,
        &files,
        &of_project,
        client.version,
        env!("CARGO_PKG_VERSION"),
    ));
    Ok((client, report))
}

fn show(report: &Report) {
    let mut rows = vec![vec![String::new(), dim(Actor::Main.name()), dim(Actor::Subagent.name())]];
    for line in &report.lines {
        let cell = styled(style_of(line.standing), line.standing.name());
        match rows.last_mut() {
            Some(row) if row.first().is_some_and(|name| name == line.name) => row.push(cell),
            _ => rows.push(vec![line.name.to_owned(), cell]),
        }
    }
    table(&rows);
    if let Some(Latency { calls, p50_micros, p99_micros }) = report.latency {
        let (p50, p99) = (thousandth(p50_micros), thousandth(p99_micros));
        say(format!("a hook takes {p50} ms, at most {p99} ms (p50 and p99 of {calls} calls)"));
    }
    let doubtful = |line: &&Line| line.standing != Standing::Closed;
    for line in report.lines.iter().filter(doubtful) {
        let standing = styled(style_of(line.standing), line.standing.name());
        let (name, who) = (line.name, line.actor.name());
        say(format!("{standing}: {name} ({who}): {}", plain(&line.detail, DETAIL_MAX)));
    }
}

fn style_of(standing: Standing) -> Style {
    match standing {
        Standing::Closed => AnsiColor::Green.on_default(),
        Standing::Unproven => AnsiColor::Yellow.on_default(),
        Standing::Open => AnsiColor::Red.on_default().bold(),
    }
}

fn as_json(client: &Installed, report: &Report) -> serde_json::Value {
    let lines: Vec<serde_json::Value> = report
        .lines
        .iter()
        .map(|line| {
            json!({
                "line": line.name, "actor": line.actor.name(), "standing": line.standing.name(),
                "detail": line.detail,
            })
        })
        .collect();
    let latency = report.latency.map(|latency| {
        json!({
            "calls": latency.calls, "p50_micros": latency.p50_micros,
            "p99_micros": latency.p99_micros,
        })
    });
    json!({
        "client": client.client.id, "version": client.version.to_string(), "program": client.program,
        "standing": report.standing().name(), "lines": lines, "latency": latency,
    })
}
