//! Copies of whole directories, which may hold a file that lands on a
//! protected one.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use jackline_shell::Access;

use super::super::Look;
use super::concrete;
use crate::facts::FileKind;
use crate::path::is_within;
use crate::place::Target;
use crate::proposal::{Proposal, Touch};

/// One file of a tree that is copied, and the protected file it would replace.
struct Landing {
    source: String,
    protected: String,
}

/// The files that would land on a protected one, if they are there.
pub(super) fn sources(look: Look<'_>, proposal: &Proposal<'_>) -> Vec<String> {
    landings(look, proposal).into_iter().map(|landing| landing.source).collect()
}

/// The protected file that a copy replaces: it has a source, or the line has
/// just made one.
pub(super) fn copied(look: Look<'_>, proposal: &Proposal<'_>) -> Option<String> {
    let made = |path: &str| {
        let mut touches = proposal.touches.iter();
        touches.any(|touch| touch.changes() && touch.target.path() == Some(path))
    };
    let there =
        |path: &str| look.facts.files.get(path).is_none_or(|fact| fact.kind != FileKind::Missing);
    let mut landings = landings(look, proposal).into_iter();
    let hit = landings.find(|landing| there(&landing.source) || made(&landing.source));
    hit.map(|landing| landing.protected)
}

fn landings(look: Look<'_>, proposal: &Proposal<'_>) -> Vec<Landing> {
    let mut found = Vec::new();
    let mut trees =
        proposal.touches.iter().filter(|touch| is_tree(touch, Access::Write)).peekable();
    if trees.peek().is_none() {
        return found;
    }
    let known = concrete(look);
    for to in trees {
        let Target::At(target) = &to.target else { continue };
        let mine = proposal.touches.iter().filter(|touch| touch.command == to.command);
        let trees = mine.filter(|touch| matches!(touch.access, Access::Read(_)) && touch.recursive);
        for source in trees.filter_map(|touch| touch.target.path()) {
            if is_elsewhere(look, proposal, to, source) {
                continue;
            }
            for protected in known.iter().filter(|known| is_within(known, target)) {
                let rest = match target.as_str() {
                    "." => protected.as_str(),
                    target => protected.get(target.len() + 1..).unwrap_or_default(),
                };
                let source = look.place.locate(rest, source);
                if source != *protected && !rest.is_empty() {
                    found.push(Landing { source, protected: protected.clone() });
                }
            }
        }
    }
    found
}

fn is_tree(touch: &Touch, access: Access) -> bool {
    touch.access == access && touch.recursive && touch.command.is_some()
}

/// Whether a copy goes into a directory that is there, and not onto it.
fn is_elsewhere(look: Look<'_>, proposal: &Proposal<'_>, to: &Touch, source: &str) -> bool {
    let Target::At(target) = &to.target else { return false };
    let name = source.rsplit('/').next().unwrap_or(source);
    let below = if target == "." { name.into() } else { format!("{target}/{name}") };
    let same = |touch: &&Touch| touch.command == to.command && is_tree(touch, Access::Write);
    let mut others = proposal.touches.iter().filter(same);
    let fact = look.facts.files.get(target);
    others.any(|touch| touch.target.path() == Some(below.as_str()))
        && fact.is_some_and(|fact| fact.kind == FileKind::Directory)
}
