//! What two layers say of models and advisors.
//!
//! No model is stricter than another, so the higher layer's hold. Where that layer pauses a
//! session that gets nowhere, a person is to look at it: a lower layer can't have an
//! advisor or a further model go on instead.

use jackline_engine::Mode;
use jackline_engine::definition::{Advisor, ModelChoice};

use super::join::{How, Joining};
use super::parts::{Parts, Said};
use super::{EffectiveLine, Standing, Subject};
use crate::words;

impl Joining {
    /// Takes out of a repository's definition what would run a program or send something
    /// to an address of its own; until a person trusts it.
    pub(super) fn withhold(&mut self, parts: &mut Parts) {
        let advised = parts.advisor.iter_mut().map(|said| &mut said.what.models);
        let lists = std::iter::once(&mut parts.choices.what).chain(advised);
        let mut withheld: Vec<String> = Vec::new();
        for list in lists {
            let named = list.iter().filter(|choice| choice.needs_trust());
            withheld.extend(named.map(ModelChoice::label));
            list.retain(|choice| !choice.needs_trust());
        }
        parts.advisor.take_if(|said| said.what.models.is_empty());
        for label in withheld {
            let why = "nobody has trusted this file to run it or to send anything there".to_owned();
            let standing = Standing::Ignored { why, until_trusted: true };
            let line = self.line(Subject::Setting, format!("model `{label}`"), parts.choices.by);
            self.ignored.push(EffectiveLine { standing, ..line });
        }
    }

    /// The models that do the work.
    pub(super) fn join_choices(
        &mut self,
        high: &Parts,
        low: &Parts,
        how: How,
    ) -> Said<Vec<ModelChoice>> {
        let (above, below) = (&high.choices, &low.choices);
        let text = |said: &Said<Vec<ModelChoice>>| words::models(&said.what);
        if below.what.is_empty() || above.what == below.what {
            return above.clone();
        }
        if above.what.is_empty() {
            let further = below.what.len() > 1 && how == How::Tighten;
            let Some(by) = pauses(high).filter(|_| further) else { return below.clone() };
            let why = "pauses a session that gets nowhere, and a further model would go on";
            self.ignore(Subject::Setting, text(below), below.by, by, why);
            return above.clone();
        }
        if how == How::Override {
            self.replaced(Subject::Setting, text(above), above.by, below.by);
            return below.clone();
        }
        let why = "has models of its own";
        self.ignore(Subject::Setting, text(below), below.by, above.by, why);
        above.clone()
    }

    /// Who is asked: the higher layer's models, as seldom and about as little as either says.
    pub(super) fn join_advisor(
        &mut self,
        high: &Parts,
        low: &Parts,
        how: How,
    ) -> Option<Said<Advisor>> {
        let text = |said: &Said<Advisor>| words::advisor(&said.what);
        let (above, below) = match (&high.advisor, &low.advisor) {
            (Some(above), Some(below)) if above.what != below.what => (above, below),
            (None, Some(below)) => {
                let Some(by) = pauses(high).filter(|_| how == How::Tighten) else {
                    return Some(below.clone());
                };
                let why = "pauses a session that gets nowhere, and an advisor would go on";
                self.ignore(Subject::Setting, text(below), below.by, by, why);
                return None;
            }
            (above, _) => return above.clone(),
        };
        if how == How::Override {
            self.replaced(Subject::Setting, text(above), above.by, below.by);
            return Some(below.clone());
        }
        let kept = Advisor {
            models: above.what.models.clone(),
            transcript_lines: above.what.transcript_lines.min(below.what.transcript_lines),
            budget: above.what.budget.min(below.what.budget),
        };
        if kept != below.what {
            let why = "has an advisor of its own, or allows less";
            self.ignore(Subject::Setting, text(below), below.by, above.by, why);
        }
        let by = if kept == above.what { above.by } else { below.by };
        Some(Said { what: kept, by })
    }
}

/// The layer that has a session wait for a person where it gets nowhere.
fn pauses(parts: &Parts) -> Option<usize> {
    let loops = parts.loops.as_ref().filter(|loops| loops.what.mode == Mode::Enforce);
    loops.map(|said| said.by).or(parts.progress.as_ref().map(|said| said.by))
}
