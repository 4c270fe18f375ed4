//! `jackline identity`: shows the parts of a session's agent, and manages approved agents.

use std::io::IsTerminal as _;

use jackline_engine::Session;
use jackline_engine::definition::checksum_without_identity;
use jackline_host::clock::now;
use jackline_host::environment::user_name;
use jackline_host::{AgentApproval, AgentApprovals};
use jackline_journal::{FileStore, SessionEntry};
use jackline_runtime::load_session;
use serde_json::json;

use super::person::{check_person_args, require_person};
use super::select;
use crate::args::{IdentityApproveArgs, IdentityCommand, IdentityRevokeArgs, IdentityShowArgs};
use crate::exit::ExitKind;
use crate::terminal::{
    bold, confirm, dim, fail, format_age, load_sessions, print_json_line, print_line, print_table,
    print_warning, sanitize, state_documents,
};

/// The minimum length of a checksum prefix.
const CHECKSUM_PREFIX_CHARS_MIN: usize = 8;

pub(crate) fn run(command: &IdentityCommand) -> ExitKind {
    let result = match command {
        IdentityCommand::Show(args) => show(args),
        IdentityCommand::Approve(args) => approve(args),
        IdentityCommand::List(args) => list(args.json),
        IdentityCommand::Revoke(args) => revoke(args),
    };
    result.map_or_else(|exit| exit, |()| ExitKind::Success)
}

/// Selects a session and loads its current state.
fn inspect_selected(name: Option<&str>) -> Result<(FileStore, SessionEntry, Session), ExitKind> {
    let (store, sessions) = load_sessions()?;
    let entry = select(&sessions, name)?;
    match load_session(&store, &entry) {
        Ok(session) => Ok((store, entry, session)),
        Err(error) => Err(fail(ExitKind::Broken, format!("{error}; {}", error.remedy()))),
    }
}

/// The workflow that the session's definition binds approvals to.
fn workflow(session: &Session) -> Option<&str> {
    session.definition().identity.as_ref().and_then(|identity| identity.workflow.as_deref())
}

fn show(args: &IdentityShowArgs) -> Result<(), ExitKind> {
    let (store, entry, session) = inspect_selected(args.session.as_deref())?;
    let (agent, definition) = (session.agent(), session.definition());
    let checksum = session.agent_checksum();
    let pins =
        AgentApprovals::of(state_documents(&store)).fact(&definition.name, workflow(&session));
    let approval = match (&pins.broken, pins.demanded, pins.checksums.contains(&checksum)) {
        (Some(reason), ..) => reason.clone(),
        (None, false, _) => "not required: no agent is approved for this definition yet".to_owned(),
        (None, true, true) => "approved".to_owned(),
        (None, true, false) => "not approved".to_owned(),
    };
    if args.json {
        let parts: serde_json::Map<String, serde_json::Value> =
            agent.parts().into_iter().map(|(name, part)| (name.to_owned(), json!(part))).collect();
        print_json_line(json!({
            "session": entry.name,
            "checksum": checksum,
            "parts": parts,
            "unknown": agent.unknown_parts(),
            "role": agent.role,
            "definition": { "name": definition.name, "checksum": checksum_without_identity(definition) },
            "workflow": workflow(&session),
            "demanded": pins.demanded || pins.broken.is_some(),
            "approved": pins.checksums.contains(&checksum),
        }));
        return Ok(());
    }
    print_line(format!("{} {checksum}", bold(&entry.name)));
    let mut rows = vec![("approval", approval)];
    let part = |part: Option<&str>| part.map_or_else(|| dim("unknown"), |text| sanitize(text, 80));
    rows.extend(agent.parts().map(|(name, value)| (name, part(value))));
    rows.push((
        "definition",
        format!("{} {}", definition.name, checksum_without_identity(definition)),
    ));
    rows.push(("role", part(agent.role.as_deref())));
    rows.extend(workflow(&session).map(|workflow| ("workflow", sanitize(workflow, 80))));
    let rows: Vec<Vec<String>> =
        rows.into_iter().map(|(name, value)| vec![format!("  {}", dim(name)), value]).collect();
    print_table(&rows);
    Ok(())
}

fn approve(args: &IdentityApproveArgs) -> Result<(), ExitKind> {
    require_person("identity approve")?;
    check_person_args(&args.person)?;
    let (store, entry, session) = inspect_selected(args.session.as_deref())?;
    let definition = session.definition();
    let checksum = session.agent_checksum();
    if session.agent().parts().iter().all(|(_, part)| part.is_none()) {
        confirm_unknown_agent(&entry, &definition.name, args.yes)?;
    }
    let opened = entry.opening().map_err(|error| fail(ExitKind::Broken, error))?;
    let pin = AgentApproval {
        checksum,
        definition: definition.name.clone(),
        workflow: workflow(&session).map(ToOwned::to_owned),
        session: opened.session.clone(),
        at: now().wall,
        by: args.person.by.clone().unwrap_or_else(user_name),
        why: args.person.why.clone(),
    };
    AgentApprovals::of(state_documents(&store))
        .approve(&pin)
        .map_err(|error| fail(ExitKind::Broken, format!("{error}; {}", error.remedy())))?;
    print_line(format!(
        "approved {checksum} for `{}`; agents without approval are now refused there",
        definition.name
    ));
    Ok(())
}

/// Warns that the approval would be for any agent whose client reports nothing, and asks.
fn confirm_unknown_agent(
    entry: &SessionEntry,
    definition: &str,
    is_confirmed: bool,
) -> Result<(), ExitKind> {
    let name = sanitize(&entry.name, 80);
    print_warning(format!(
        "the client of session `{name}` reported no prompt, no tools, no model and no parameters, so \
         this approves every agent that reports none of them under `{definition}`"
    ));
    if is_confirmed {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        let text = "no terminal to confirm in; if you want to approve any such agent, pass --yes";
        return Err(fail(ExitKind::Usage, text));
    }
    if !confirm("Approve any such agent?") {
        print_line("nothing was changed");
        return Err(ExitKind::No);
    }
    Ok(())
}

fn list(as_json: bool) -> Result<(), ExitKind> {
    let (store, _) = load_sessions()?;
    let pins = AgentApprovals::of(state_documents(&store)).list();
    if as_json {
        pins.iter().for_each(|pin| print_json_line(json!(pin)));
        return Ok(());
    }
    if pins.is_empty() {
        print_line(
            "no agent is approved, so approval is not required; `jackline identity approve` approves the agent of a session",
        );
    }
    let rows: Vec<Vec<String>> = pins
        .iter()
        .map(|pin| {
            let bound =
                pin.workflow.as_ref().map_or_else(String::new, |it| format!(", workflow {it}"));
            let why = pin.why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
            vec![
                pin.checksum.to_string(),
                sanitize(&format!("{}{bound}", pin.definition), 80),
                dim(sanitize(&format!("{} by {}{why}", format_age(pin.at), pin.by), 160)),
            ]
        })
        .collect();
    print_table(&rows);
    Ok(())
}

fn revoke(args: &IdentityRevokeArgs) -> Result<(), ExitKind> {
    // Without any approval, every agent may work. So revoking the last one relaxes the guard.
    require_person("identity revoke")?;
    let beginning = args.checksum.to_ascii_lowercase();
    if beginning.len() < CHECKSUM_PREFIX_CHARS_MIN {
        let text = format!(
            "give at least {CHECKSUM_PREFIX_CHARS_MIN} characters of the checksum; `jackline identity list` shows it"
        );
        return Err(fail(ExitKind::Usage, text));
    }
    let (store, _) = load_sessions()?;
    let revoked = AgentApprovals::of(state_documents(&store))
        .revoke(&beginning)
        .map_err(|error| fail(ExitKind::Broken, format!("{error}; {}", error.remedy())))?;
    if revoked.is_empty() {
        let text = format!(
            "no approved agent has the checksum `{}`; `jackline identity list` shows all",
            sanitize(&beginning, 80)
        );
        return Err(fail(ExitKind::Usage, text));
    }
    for pin in revoked {
        print_line(format!("revoked the approval of {} for `{}`", pin.checksum, pin.definition));
    }
    Ok(())
}
