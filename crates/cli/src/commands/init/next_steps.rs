//! What a person does after an installation. It depends on the definition that is now in force.

use jackline_clients::installation::InstallScope;
use jackline_engine::Mode;
use jackline_journal::FileStore;
use jackline_runtime::definitions::EffectiveDefinition;
use jackline_setup::install::{InstallPlan, InstallRequest};

use super::plan_display::display_path;
use crate::commands::trust_demands::offer_trust;
use crate::terminal::{machine_definitions, print_line};

/// The definition in force in the guarded directory; nothing if it does not load.
fn definition_in_force(store: &FileStore, plan: &InstallPlan) -> Option<EffectiveDefinition> {
    let definitions = machine_definitions(None, store).read_only();
    let effective = definitions.effective(None, &plan.project).ok()?;
    effective.combined.problems.is_empty().then_some(effective)
}

/// Prints the next steps after an installation.
pub(super) fn print_next_steps(plan: &InstallPlan, wish: &InstallRequest, asks: bool) {
    let client = plan.clients.first().map_or("the client", |found| found.client.id.as_str());
    print_line("");
    if !plan.disabled_reasons.is_empty() {
        print_line(format!(
            "next: allow `{client}` to run its hooks (see above), then run `jackline init {client}{}` again",
            wish.scope.flag()
        ));
        return;
    }
    let store = FileStore::new(&wish.state_home, jackline_host::clock::boot_number());
    let Some(effective) = definition_in_force(&store, plan) else {
        print_line("next: fix the definition, because no call runs until it loads:");
        print_line("      `jackline check` shows what is wrong");
        return;
    };
    offer_trust(&store, &effective, asks);
    print_line(match wish.scope {
        InstallScope::User => format!("next: start `{client}` in any directory"),
        InstallScope::Local | InstallScope::Shared => {
            format!("next: start `{client}` in {}", display_path(&plan.project))
        }
    });
    match effective.combined.definition.mode {
        Mode::Observe => {
            print_line(
                "      it observes: `jackline status` then shows what would have been denied",
            );
            print_line("      `jackline enforce` starts enforcing, when you are satisfied");
        }
        Mode::Enforce => {
            print_line(
                "      it enforces: denied calls don't run; `jackline status` then shows them",
            );
            print_line("      `jackline observe` only records what would be denied");
        }
    }
}

/// Offers trust where the guard was installed before.
pub(super) fn offer_needed_trust(plan: &InstallPlan, wish: &InstallRequest, asks: bool) {
    let store = FileStore::new(&wish.state_home, jackline_host::clock::boot_number());
    if let Some(effective) = definition_in_force(&store, plan) {
        offer_trust(&store, &effective, asks);
    }
}
