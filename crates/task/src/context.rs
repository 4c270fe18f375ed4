//! What programs remember, kept so that to remember what it was costs nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

/// What the programs of one call and its delegates remember, by the name of the task. A
/// copy shares everything with the original, however much that is.
#[derive(Debug, Clone, Default)]
pub struct Contexts(Arc<BTreeMap<String, Context>>);

type Context = Arc<BTreeMap<String, Arc<Value>>>;

impl Contexts {
    /// What a program of a task finds; `first` is what the task begins with.
    pub fn get(&self, task: &str, first: &Map<String, Value>) -> Map<String, Value> {
        match self.0.get(task) {
            Some(context) => {
                context.iter().map(|(key, value)| (key.clone(), Value::clone(value))).collect()
            }
            None => first.clone(),
        }
    }

    /// Keeps what a program wants to be remembered; what is the same stays shared.
    pub fn remember(&mut self, task: &str, context: Map<String, Value>) {
        let before = self.0.get(task).cloned().unwrap_or_default();
        let keep = |(key, value): (String, Value)| {
            let same = before.get(&key).filter(|known| ***known == value).cloned();
            (key, same.unwrap_or_else(|| Arc::new(value)))
        };
        let context = Arc::new(context.into_iter().map(keep).collect());
        let mut all = BTreeMap::clone(&self.0);
        all.insert(task.to_owned(), context);
        self.0 = Arc::new(all);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_snapshot_shares_everything_and_is_exactly_what_was() {
        let big = json!({ "big": "x".repeat(10 << 20), "n": 1 });
        let Value::Object(big) = big else { panic!() };
        let mut contexts = Contexts::default();
        contexts.remember("t", big.clone());
        let snapshot = contexts.clone();
        assert!(Arc::ptr_eq(&snapshot.0, &contexts.0), "nothing is copied");
        let mut after = big.clone();
        after.insert("n".to_owned(), json!(2));
        contexts.remember("t", after);
        let shared = |it: &Contexts| Arc::clone(&it.0["t"]["big"]);
        assert!(Arc::ptr_eq(&shared(&snapshot), &shared(&contexts)), "what is the same is shared");
        contexts = snapshot;
        assert_eq!(contexts.get("t", &Map::new()), big);
    }

    #[test]
    fn a_task_begins_with_what_it_is_given() {
        let first = Map::from_iter([("a".to_owned(), json!(1))]);
        assert_eq!(Contexts::default().get("t", &first), first);
    }
}
