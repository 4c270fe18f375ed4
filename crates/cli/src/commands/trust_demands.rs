//! What a repository's definition needs a person's trust for, and the offer to give it.

use std::io::{self, IsTerminal as _};
use std::path::Path;

use jackline_definition::{DemandStatus, words};
use jackline_engine::definition::CompletionRequirement;
use jackline_engine::{Definition, Digest};
use jackline_host::clock::now;
use jackline_host::environment::user_name;
use jackline_host::{TrustGrant, TrustStore, check_person};
use jackline_journal::{FileStore, StoreError};
use jackline_runtime::definitions::EffectiveDefinition;

use crate::exit::ExitKind;
use crate::terminal::{confirm, fail, print_line, sanitize, state_documents};

/// The maximum length of a shown line from a file.
const LINE_MAX: usize = 400;

/// What a definition may do only after a person has trusted its file.
pub(super) struct TrustDemands {
    /// The commands that it would run on this machine.
    pub(super) commands: Vec<String>,
    /// The hosts to which it would send notifications.
    pub(super) hosts: Vec<String>,
    /// The demands of other layers that it would relax.
    pub(super) relaxations: Vec<String>,
}

impl TrustDemands {
    pub(super) fn of(effective: &EffectiveDefinition) -> Self {
        let definition = &effective.combined.definition;
        let notifiers = definition.notify.iter().filter(|it| !it.trusted);
        let commands = untrusted_checks(definition)
            .into_iter()
            .chain(notifiers.clone().filter_map(|it| it.command.as_deref()));
        let relaxations =
            effective.combined.decisions.iter().filter_map(|line| match &line.status {
                DemandStatus::Ignored { why, until_trusted: true } => {
                    Some(format!("{}: {why}", line.text))
                }
                _ => None,
            });
        Self {
            commands: commands.map(ToOwned::to_owned).collect(),
            hosts: notifiers.filter_map(|it| it.webhook.as_deref().map(words::host)).collect(),
            relaxations: relaxations.collect(),
        }
    }

    /// Whether something that the file demands does not happen without trust.
    fn is_needed(&self) -> bool {
        !self.commands.is_empty() || !self.hosts.is_empty()
    }

    pub(super) fn print(&self) {
        let print = |title: &str, lines: &[String], quote: &str| {
            if !lines.is_empty() {
                print_line(title);
            }
            for line in lines {
                print_line(format!("  {quote}{}{quote}", sanitize(line, LINE_MAX)));
            }
        };
        print("would run these commands on this machine:", &self.commands, "`");
        print("would send notifications to:", &self.hosts, "");
        print("would relax:", &self.relaxations, "");
        if !self.is_needed() && self.relaxations.is_empty() {
            print_line("would run nothing and relax nothing, so it needs no trust");
        }
    }

    /// The commands and hosts in one line.
    fn in_one_line(&self) -> String {
        let commands =
            self.commands.iter().map(|line| format!("run `{}`", sanitize(line, LINE_MAX)));
        let hosts = self.hosts.iter().map(|host| format!("notify {}", sanitize(host, LINE_MAX)));
        commands.chain(hosts).collect::<Vec<String>>().join(", ")
    }
}

/// The commands of completion checks that need trust before they may run.
pub(super) fn untrusted_checks(definition: &Definition) -> Vec<&str> {
    fn of(checker: &CompletionRequirement) -> Vec<&str> {
        match checker {
            CompletionRequirement::Command { line, trusted: false, .. } => vec![line],
            CompletionRequirement::All(parts) | CompletionRequirement::Any(parts) => {
                parts.iter().flat_map(of).collect()
            }
            CompletionRequirement::Command { .. }
            | CompletionRequirement::Files(_)
            | CompletionRequirement::Custom { .. }
            | CompletionRequirement::Clean
            | CompletionRequirement::DocsUpdated => Vec::new(),
        }
    }
    definition.completion.as_ref().map(of).unwrap_or_default()
}

/// Says what the definition of this directory may not do without trust. On a terminal a person is
/// asked for the trust, unless `asks` is false.
pub(super) fn offer_trust(store: &FileStore, effective: &EffectiveDefinition, asks: bool) {
    let demands = TrustDemands::of(effective);
    let Some((path, checksum)) = effective.repository().filter(|_| !effective.trusted) else {
        return;
    };
    if !demands.is_needed() {
        return;
    }
    print_line(format!(
        "needs your trust: without it, this file may not {}",
        demands.in_one_line()
    ));
    let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    if !(asks && is_terminal && check_person().is_ok()) {
        print_line("  to trust it, read it and run `jackline trust`");
        return;
    }
    let name = sanitize(&path.display().to_string(), LINE_MAX);
    if confirm(&format!("Trust `{name}` as it is now?")) {
        give_trust(&TrustStore::of(state_documents(store)), &path, checksum, &name);
    } else {
        print_line("  not trusted; `jackline trust` trusts it later");
    }
}

/// Trusts a file in its current state, and says so.
pub(super) fn give_trust(
    trust: &TrustStore,
    path: &Path,
    checksum: Digest,
    name: &str,
) -> ExitKind {
    let Some(file) = path.to_str().map(ToOwned::to_owned) else {
        return fail(
            ExitKind::Usage,
            format!(
                "can't trust `{name}`: its path is not UTF-8; nothing was changed; rename the directory, then run this again"
            ),
        );
    };
    let grant = TrustGrant { checksum, file, at: now().wall, by: user_name() };
    match trust.grant(&grant) {
        Ok(()) => {
            print_line(format!(
                "`{name}` is trusted in its current state; this applies to new sessions"
            ));
            super::open_sessions::print_open_sessions(path);
            ExitKind::Success
        }
        Err(error) => fail_to_write(&error),
    }
}

fn fail_to_write(error: &StoreError) -> ExitKind {
    fail(ExitKind::Broken, format!("{error}; {}", error.remedy()))
}
