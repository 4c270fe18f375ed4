//! A person wants the session to run under the definition as it is now.

use alloc::format;
use alloc::string::{String, ToString};

use super::Futile;
use crate::facts::{NewDefinition, Queries, Query, ReloadFact};
use crate::guards::Look;
use crate::guards::protected::{is_suspected, watch_list};
use crate::verdict::ViolationSubtype;

/// Asks for the definition, then for what it protects.
pub(super) fn needs(look: Look<'_>, queries: &mut Queries) {
    match &look.facts.reload {
        // A session begins with the definition as it is.
        None if look.state.seq == 0 => {}
        None => queries.ask(Query::Reload),
        Some(ReloadFact::New(new)) if look.facts.protects.is_none() => {
            let files = new.newly_watched(look.definition, look.place);
            queries.ask(Query::Protect { files });
        }
        Some(_) => {}
    }
}

/// Why it would change nothing.
pub(super) fn futile(look: Look<'_>) -> Option<Futile> {
    match &look.facts.reload {
        Some(ReloadFact::New(new)) => doubtful(look, new).map(|path| Futile {
            subtype: ViolationSubtype::ChangedDuringCall,
            message: format!(
                "`{path}` was changed while a call was under way, and nobody can tell by whom; \
                 the definition in force stays"
            ),
            correction: "once no call is open (`jackline status`), look at the file, make the \
                         change again, and reload"
                .to_string(),
        }),
        Some(ReloadFact::Broken { reason }) => Some(Futile {
            subtype: ViolationSubtype::Definition,
            message: format!("{reason}; the definition in force stays"),
            correction: "mend it (`jackline check`), then reload".to_string(),
        }),
        None if look.state.seq > 0 => Some(Futile {
            subtype: ViolationSubtype::Definition,
            message: "nobody could look at the definition; the one in force stays".to_string(),
            correction: "reload again".to_string(),
        }),
        Some(ReloadFact::Same) | None => Some(Futile::now(
            "the session runs under the definition as it is now".to_string(),
            "nothing to do; change the definition first",
        )),
    }
}

/// A file of the definition, as it was or as it would be, that is not what was
/// seen last, although the agent may have been at work on files since. At the
/// next gate it is given back as it was; so what it says now must not be obeyed.
fn doubtful(look: Look<'_>, new: &NewDefinition) -> Option<String> {
    let (state, place) = (look.state, look.place);
    let compared = watch_list(place, look.definition);
    let suspected = is_suspected(state);
    let is_doubtful =
        |path: &String| compared.contains(path) && (suspected || state.watched.is_damaged(path));
    let is_other = |path: &str, now| state.watched.contents(path) != now;
    let written = new.files.iter().filter(|file| !file.by_person).filter_map(|file| {
        let path = place.locate(&file.path, ".");
        is_other(&path, Some(file.sha256)).then_some(path)
    });
    let is_left = |path: &&String| new.files.iter().all(|file| file.path != **path);
    let left = place.definition.iter().filter(is_left).map(|path| place.locate(path, "."));
    let removed = left.filter(|path| is_other(path, None));
    written.chain(removed).find(|path| !look.facts.is_off() && is_doubtful(path))
}
