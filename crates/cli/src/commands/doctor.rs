//! `jackline doctor CLIENT`: tests with the real client whether the guard blocks denied calls.

use std::io;

use anstyle::{AnsiColor, Style};
use jackline_clients::installed_client::{FindClientError, InstalledClient};
use jackline_clients::settings_file::settings_files;
use jackline_clients::{CLIENTS, Client};
use jackline_host::environment::find_program;
use jackline_setup::doctor::{
    CheckStatus, CheckedAgent, Doctor, DoctorCheck, DoctorReport, HookLatency, check_installation,
};
use jackline_setup::install::{quoted_program, settings_of_project};
use jackline_setup::live::LiveError;
use serde_json::json;

use crate::args::DoctorArgs;
use crate::exit::ExitKind;
use crate::terminal::{
    current_directory, dim, fail, format_thousandths, print_json_line, print_line, print_note,
    print_table, sanitize, styled,
};

/// The maximum length of a shown observation.
const DETAIL_MAX: usize = 400;

pub(crate) fn run(args: &DoctorArgs) -> ExitKind {
    match run_doctor(args) {
        Ok((client, report)) => {
            if args.json {
                print_json_line(as_json(&client, &report));
            } else {
                show(&report);
            }
            match report.worst_status() {
                CheckStatus::Closed => ExitKind::Success,
                CheckStatus::Open => ExitKind::No,
                CheckStatus::Unproven => ExitKind::Broken,
            }
        }
        Err(LiveError::Client(error @ FindClientError::NotInstalled { .. })) => {
            let text = format!(
                "there is no agent client to test: {error}, or name its program with `jackline \
                 doctor --client-program PATH`"
            );
            fail(ExitKind::Usage, text)
        }
        Err(error @ LiveError::Client(_)) => fail(ExitKind::Usage, error),
        Err(error) => fail(ExitKind::Broken, error),
    }
}

fn run_doctor(args: &DoctorArgs) -> Result<(InstalledClient, DoctorReport), LiveError> {
    let tested = args.client.unwrap_or_else(first_installed_client);
    let client = InstalledClient::find(tested, args.client_program.as_deref())?;
    let start = |source| LiveError::Start { program: "jackline".into(), source };
    let jackline = std::env::current_exe().map_err(start)?;
    let jackline = quoted_program(&jackline).map_err(|error| start(io::Error::other(error)))?;
    let name = client.program.display();
    print_note(dim(format!("{} {}, {name}", tested.title, client.version)));
    let doctor = Doctor { client: &client, jackline: &jackline };
    let mut report = doctor.examine(|what| print_note(dim(format!("testing: {what}"))))?;
    let files = settings_files(&current_directory(), tested);
    let of_project = settings_of_project(&current_directory(), tested);
    report.checks.extend(check_installation(
        tested,
        &files,
        &of_project,
        client.version,
        env!("CARGO_PKG_VERSION"),
    ));
    Ok((client, report))
}

/// The first client whose program is found; without any, the first of all.
fn first_installed_client() -> &'static Client {
    let is_installed = |client: &&Client| find_program(client.id.as_str()).is_some();
    let [first, ..] = CLIENTS;
    CLIENTS.into_iter().find(is_installed).unwrap_or(first)
}

fn show(report: &DoctorReport) {
    let mut rows = vec![vec![
        String::new(),
        dim(CheckedAgent::Main.name()),
        dim(CheckedAgent::Subagent.name()),
    ]];
    for line in &report.checks {
        let cell = styled(standing_style(line.status), standing_label(line.status));
        match rows.last_mut() {
            Some(row) if row.first().is_some_and(|name| name == line.name) => row.push(cell),
            _ => rows.push(vec![line.name.to_owned(), cell]),
        }
    }
    print_table(&rows);
    if let Some(HookLatency { calls, p50_micros, p99_micros }) = report.latency {
        let (p50, p99) = (format_thousandths(p50_micros), format_thousandths(p99_micros));
        print_line(format!(
            "a hook takes {p50} ms, at most {p99} ms (p50 and p99 of {calls} calls)"
        ));
    }
    let is_not_ok = |line: &&DoctorCheck| line.status != CheckStatus::Closed;
    for line in report.checks.iter().filter(is_not_ok) {
        let standing = styled(standing_style(line.status), standing_label(line.status));
        let (name, actor) = (line.name, line.actor.name());
        print_line(format!("{standing}: {name} ({actor}): {}", sanitize(&line.detail, DETAIL_MAX)));
    }
}

/// The result of a check for people. `--json` has the words `closed`, `unproven` and `open`.
fn standing_label(standing: CheckStatus) -> &'static str {
    match standing {
        CheckStatus::Closed => "ok",
        CheckStatus::Unproven => "not tested",
        CheckStatus::Open => "OPEN",
    }
}

fn standing_style(standing: CheckStatus) -> Style {
    match standing {
        CheckStatus::Closed => Style::new().dimmed(),
        CheckStatus::Unproven => AnsiColor::Yellow.on_default(),
        CheckStatus::Open => AnsiColor::Red.on_default().bold(),
    }
}

fn as_json(client: &InstalledClient, report: &DoctorReport) -> serde_json::Value {
    let lines: Vec<serde_json::Value> = report
        .checks
        .iter()
        .map(|line| {
            json!({
                "line": line.name, "actor": line.actor.name(), "standing": line.status.name(),
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
        "standing": report.worst_status().name(), "lines": lines, "latency": latency,
    })
}
