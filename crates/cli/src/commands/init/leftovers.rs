//! What stays after `jackline init --uninstall`: shown, and removed if the person wants that.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use jackline_setup::install::{
    InstallPlan, InstallRequest, Leftover, LeftoverKind, RemovedLeftovers, leftovers,
    remove_leftovers,
};
use serde_json::{Value, json};

use super::plan_display::display_path;
use crate::args::InitArgs;
use crate::terminal::{
    confirm, dim, format_bytes, format_count, print_line, print_warning, sanitize,
};

/// The maximum length of a shown reason.
const REASON_MAX: usize = 200;

/// What stays after the hooks are removed.
#[derive(Default)]
pub(super) struct RemainingFiles {
    all: Vec<Leftover>,
    /// Whether they were removed, except for the failures.
    is_removed: bool,
    removed: RemovedLeftovers,
}

impl RemainingFiles {
    /// What stays after a removal; nothing after any other plan.
    pub(super) fn of(plan: &InstallPlan, wish: &InstallRequest, args: &InitArgs) -> Self {
        let is_removal = args.uninstall && !args.mcp;
        let all = if is_removal { leftovers(wish, plan) } else { Vec::new() };
        Self { all, ..Self::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn has_failures(&self) -> bool {
        !self.removed.failures.is_empty()
    }

    pub(super) fn remove(&mut self, wish: &InstallRequest) {
        self.removed = remove_leftovers(wish, &self.all);
        self.is_removed = true;
    }

    /// Shows what stays, and how to remove it. On a terminal the person is asked.
    pub(super) fn offer(&mut self, wish: &InstallRequest, args: &InitArgs) {
        if self.is_empty() || self.is_removed {
            return;
        }
        print_line("");
        print_line("still here:");
        self.list();
        let asks = !args.yes && !args.dry_run && io::stdin().is_terminal();
        if asks && confirm("Remove these as well?") {
            self.remove(wish);
            self.report(wish);
            return;
        }
        let clients = args.clients.join(" ");
        let space = if clients.is_empty() { "" } else { " " };
        print_line(format!(
            "to remove them: `jackline init{space}{}{} --uninstall --purge`",
            sanitize(&clients, REASON_MAX),
            wish.scope.flag()
        ));
    }

    /// Lists the files; sessions are counted.
    pub(super) fn list(&self) {
        for leftover in self.all.iter().filter(|it| it.kind != LeftoverKind::Session) {
            let what = match leftover.kind {
                LeftoverKind::Definition => "the definition, which changed since `init` wrote it",
                LeftoverKind::Reports | LeftoverKind::Session => "reports and control files",
            };
            print_line(format!("  {}  {what}", display_path(&leftover.path)));
        }
        let (count, bytes, place) = self.sessions();
        if let Some(place) = place {
            let sessions = format_count(count, "session");
            print_line(format!("  {place}  {sessions} of this project, {}", format_bytes(bytes)));
        }
    }

    /// The number of the sessions, their size, and the directory in which they are.
    fn sessions(&self) -> (u64, u64, Option<String>) {
        let sessions = || self.all.iter().filter(|it| it.kind == LeftoverKind::Session);
        let count = sessions().fold(0, |count, _| count + 1);
        let bytes = sessions().map(|session| session.bytes).sum();
        let place = sessions().next().and_then(|session| session.path.parent().map(display_path));
        (count, bytes, place)
    }

    /// Says what was removed, what was not, and what is left of other projects.
    pub(super) fn report(&self, wish: &InstallRequest) {
        if !self.is_removed {
            return;
        }
        let failed = |path: &PathBuf| self.removed.failures.iter().any(|(other, _)| other == path);
        for leftover in self.all.iter().filter(|it| it.kind != LeftoverKind::Session) {
            if !failed(&leftover.path) {
                let backup = self.backup_of(&leftover.path);
                let backup = backup.map(|file| format!("  backup: {}", display_path(file)));
                print_line(format!(
                    "removed {}{}",
                    display_path(&leftover.path),
                    dim(backup.unwrap_or_default())
                ));
            }
        }
        let (count, bytes, _) = self.sessions();
        if count > 0 {
            let sessions = format_count(count, "session");
            print_line(format!("removed {sessions} of this project, {}", format_bytes(bytes)));
        }
        for (path, reason) in &self.removed.failures {
            let reason = sanitize(reason, REASON_MAX);
            print_warning(format!("`{}` is not removed: {reason}", display_path(path)));
        }
        if wish.state_home.is_dir() {
            let home = display_path(&wish.state_home);
            print_line(format!(
                "`{home}` stays, with the backups of changed files and the state of other projects; \
                 `rm -r {home}` removes it"
            ));
        }
    }

    fn backup_of(&self, path: &Path) -> Option<&PathBuf> {
        let backup = self.removed.backup.as_ref().filter(|(other, _)| other == path);
        backup.map(|(_, backup)| backup)
    }

    pub(super) fn as_json(&self) -> Value {
        let of = |leftover: &Leftover| {
            let kind = match leftover.kind {
                LeftoverKind::Definition => "definition",
                LeftoverKind::Reports => "reports",
                LeftoverKind::Session => "session",
            };
            let failure = self.removed.failures.iter().find(|(path, _)| *path == leftover.path);
            json!({
                "kind": kind, "path": leftover.path, "bytes": leftover.bytes,
                "removed": self.is_removed && failure.is_none(),
                "error": failure.map(|(_, reason)| reason),
                "backup": self.backup_of(&leftover.path),
            })
        };
        self.all.iter().map(of).collect()
    }
}
