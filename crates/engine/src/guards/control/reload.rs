//! The control `reload`: a person wants the session to use the current definition file.

use alloc::format;
use alloc::string::{String, ToString};

use super::ControlRefusal;
use crate::facts::{NewDefinition, Queries, Query, ReloadFact};
use crate::guards::GuardInput;
use crate::guards::protected::{may_agent_write, watch_list};
use crate::verdict::ViolationSubtype;

/// Requests the definition, then the files that it protects.
pub(super) fn request_facts(input: GuardInput<'_>, queries: &mut Queries) {
    match &input.facts.reload {
        // A new session starts with the current definition.
        None if input.state.seq == 0 => {}
        None => queries.ask(Query::Reload),
        Some(ReloadFact::New(new)) if input.facts.protects.is_none() => {
            let files = new.newly_protected(input.definition, input.place);
            queries.ask(Query::Protect { files });
        }
        Some(_) => {}
    }
}

/// Returns why a reload is refused.
pub(super) fn check_reload(input: GuardInput<'_>) -> Option<ControlRefusal> {
    match &input.facts.reload {
        Some(ReloadFact::New(new)) => find_suspect_file(input, new).map(|path| ControlRefusal {
            subtype: ViolationSubtype::ChangedDuringCall,
            message: format!(
                "`{path}` was changed while a call was running, so it is unknown who changed it; \
                 the definition in force stays"
            ),
            correction: "once no call is open (see `jackline status`), check the file, make the \
                         change again, then reload"
                .to_string(),
        }),
        Some(ReloadFact::Broken { reason }) => Some(ControlRefusal {
            subtype: ViolationSubtype::Definition,
            message: format!("{reason}; the definition in force stays"),
            correction: "nothing was changed; solve that (`jackline check` shows errors of a definition), then reload".to_string(),
        }),
        None if input.state.seq > 0 => Some(ControlRefusal {
            subtype: ViolationSubtype::Definition,
            message: "the definition could not be read; the one in force stays".to_string(),
            correction: "try to reload again".to_string(),
        }),
        Some(ReloadFact::Same) | None => Some(ControlRefusal::no_effect(
            "the session already uses the current definition".to_string(),
            "nothing to do; change the definition first",
        )),
    }
}

/// Returns a definition file, old or new, that differs from its last checked content although the
/// agent may have been writing files since. The next gate restores such a file, so its current
/// content must not be used.
fn find_suspect_file(input: GuardInput<'_>, new: &NewDefinition) -> Option<String> {
    let (state, place) = (input.state, input.place);
    let compared = watch_list(place, input.definition);
    let suspected = may_agent_write(state);
    let is_doubtful = |path: &String| {
        compared.contains(path) && (suspected || state.protected_files.is_damaged(path))
    };
    let is_other = |path: &str, now| state.protected_files.contents(path) != now;
    let written = new.files.iter().filter(|file| !file.by_person).filter_map(|file| {
        let path = place.resolve_path(&file.path, ".");
        is_other(&path, Some(file.sha256)).then_some(path)
    });
    let is_left = |path: &&String| new.files.iter().all(|file| file.path != **path);
    let left = place.definition.iter().filter(is_left).map(|path| place.resolve_path(path, "."));
    let removed = left.filter(|path| is_other(path, None));
    written.chain(removed).find(|path| !input.facts.is_off() && is_doubtful(path))
}
