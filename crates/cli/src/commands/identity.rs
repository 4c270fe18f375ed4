//! `jackline identity`: what the agent of a session is made of, and which agents a person has
//! approved.

use jackline_engine::Session;
use jackline_engine::definition::without_identity;
use jackline_host::clock::now;
use jackline_host::environment::person;
use jackline_host::{Pin, Pins};
use jackline_journal::{FileStore, SessionEntry};
use jackline_runtime::inspect;
use serde_json::json;

use super::person::{may_open, may_say};
use super::select;
use crate::args::{IdentityApproveArgs, IdentityCommand, IdentityRevokeArgs, IdentityShowArgs};
use crate::exit::Exit;
use crate::terminal::{
    ago, bold, dim, fail, plain, say, say_json, sessions, state_documents, table,
};

/// How much of a checksum has to be said to mean one.
const BEGINNING_MIN: usize = 8;

pub(crate) fn run(command: &IdentityCommand) -> Exit {
    let done = match command {
        IdentityCommand::Show(args) => show(args),
        IdentityCommand::Approve(args) => approve(args),
        IdentityCommand::List(args) => list(args.json),
        IdentityCommand::Revoke(args) => revoke(args),
    };
    done.map_or_else(|exit| exit, |()| Exit::Fine)
}

/// The session that is meant, as it stands.
fn looked(name: Option<&str>) -> Result<(FileStore, SessionEntry, Session), Exit> {
    let (store, sessions) = sessions()?;
    let found = select(&sessions, name)?;
    match inspect(&store, &found) {
        Ok(session) => Ok((store, found, session)),
        Err(error) => Err(fail(Exit::Broken, format!("{error}; {}", error.remedy()))),
    }
}

/// The workflow that its definition binds approvals to.
fn workflow(session: &Session) -> Option<&str> {
    session.definition().identity.as_ref().and_then(|identity| identity.workflow.as_deref())
}

fn show(args: &IdentityShowArgs) -> Result<(), Exit> {
    let (store, found, session) = looked(args.session.as_deref())?;
    let (agent, definition) = (session.agent(), session.definition());
    let checksum = session.agent_checksum();
    let pins = Pins::of(state_documents(&store)).fact(&definition.name, workflow(&session));
    let standing = match (&pins.broken, pins.demanded, pins.checksums.contains(&checksum)) {
        (Some(reason), ..) => reason.clone(),
        (None, false, _) => "none is demanded: no agent is approved for it yet".to_owned(),
        (None, true, true) => "approved".to_owned(),
        (None, true, false) => "not approved".to_owned(),
    };
    if args.json {
        let parts: serde_json::Map<String, serde_json::Value> =
            agent.parts().into_iter().map(|(name, part)| (name.to_owned(), json!(part))).collect();
        say_json(json!({
            "session": found.name,
            "checksum": checksum,
            "parts": parts,
            "unknown": agent.unknown(),
            "role": agent.role,
            "definition": { "name": definition.name, "checksum": without_identity(definition) },
            "workflow": workflow(&session),
            "demanded": pins.demanded || pins.broken.is_some(),
            "approved": pins.checksums.contains(&checksum),
        }));
        return Ok(());
    }
    say(format!("{} {checksum}", bold(&found.name)));
    let mut rows = vec![("approval", standing)];
    let part = |part: Option<&str>| part.map_or_else(|| dim("unknown"), |text| plain(text, 80));
    rows.extend(agent.parts().map(|(name, value)| (name, part(value))));
    rows.push(("definition", format!("{} {}", definition.name, without_identity(definition))));
    rows.push(("role", part(agent.role.as_deref())));
    rows.extend(workflow(&session).map(|workflow| ("workflow", plain(workflow, 80))));
    let rows: Vec<Vec<String>> =
        rows.into_iter().map(|(name, value)| vec![format!("  {}", dim(name)), value]).collect();
    table(&rows);
    Ok(())
}

fn approve(args: &IdentityApproveArgs) -> Result<(), Exit> {
    may_open("identity approve")?;
    may_say(&args.word)?;
    let (store, found, session) = looked(args.session.as_deref())?;
    let definition = session.definition();
    let checksum = session.agent_checksum();
    let opened = found.opened().map_err(|error| fail(Exit::Broken, error))?;
    let pin = Pin {
        checksum,
        definition: definition.name.clone(),
        workflow: workflow(&session).map(ToOwned::to_owned),
        session: opened.session.clone(),
        at: now().wall,
        by: args.word.by.clone().unwrap_or_else(person),
        why: args.word.why.clone(),
    };
    Pins::of(state_documents(&store))
        .approve(&pin)
        .map_err(|error| fail(Exit::Broken, format!("{error}; {}", error.remedy())))?;
    say(format!(
        "{checksum} may work under `{}`; no other agent may that is not approved",
        definition.name
    ));
    Ok(())
}

fn list(as_json: bool) -> Result<(), Exit> {
    let (store, _) = sessions()?;
    let pins = Pins::of(state_documents(&store)).list();
    if as_json {
        pins.iter().for_each(|pin| say_json(json!(pin)));
        return Ok(());
    }
    if pins.is_empty() {
        say(
            "no agent is approved, so none has to be; `jackline identity approve` approves that of a session",
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
                plain(&format!("{}{bound}", pin.definition), 80),
                dim(plain(&format!("{} by {}{why}", ago(pin.at), pin.by), 160)),
            ]
        })
        .collect();
    table(&rows);
    Ok(())
}

fn revoke(args: &IdentityRevokeArgs) -> Result<(), Exit> {
    // Without any approval nothing is demanded: to take the last one away opens the guard.
    may_open("identity revoke")?;
    let beginning = args.checksum.to_ascii_lowercase();
    if beginning.len() < BEGINNING_MIN {
        let text = format!(
            "say at least {BEGINNING_MIN} letters of the checksum; `jackline identity list` shows them"
        );
        return Err(fail(Exit::Usage, text));
    }
    let (store, _) = sessions()?;
    let gone = Pins::of(state_documents(&store))
        .revoke(&beginning)
        .map_err(|error| fail(Exit::Broken, format!("{error}; {}", error.remedy())))?;
    if gone.is_empty() {
        let text = format!(
            "no agent `{}` is approved; `jackline identity list` shows them",
            plain(&beginning, 80)
        );
        return Err(fail(Exit::Usage, text));
    }
    for pin in gone {
        say(format!("{} is approved for `{}` no longer", pin.checksum, pin.definition));
    }
    Ok(())
}
