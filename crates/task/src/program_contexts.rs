//! The contexts of programs: shared values, so that a snapshot copies nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

/// The context of each task of a call and its delegates, by task name. A clone shares all values
/// with the original.
#[derive(Debug, Clone, Default)]
pub struct ProgramContexts(Arc<BTreeMap<String, SharedContext>>);

type SharedContext = Arc<BTreeMap<String, Arc<Value>>>;

impl ProgramContexts {
    /// The context for a program of a task; `first` is the initial context of the task.
    pub fn get(&self, task: &str, first: &Map<String, Value>) -> Map<String, Value> {
        match self.0.get(task) {
            Some(context) => {
                context.iter().map(|(key, value)| (key.clone(), Value::clone(value))).collect()
            }
            None => first.clone(),
        }
    }

    /// Stores the context of a program. Unchanged values stay shared.
    pub fn store(&mut self, task: &str, context: Map<String, Value>) {
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
    fn a_snapshot_shares_all_values_and_can_be_restored() {
        let big = json!({ "big": "x".repeat(10 << 20), "n": 1 });
        let Value::Object(big) = big else { panic!() };
        let mut contexts = ProgramContexts::default();
        contexts.store("t", big.clone());
        let snapshot = contexts.clone();
        assert!(Arc::ptr_eq(&snapshot.0, &contexts.0), "nothing is copied");
        let mut after = big.clone();
        after.insert("n".to_owned(), json!(2));
        contexts.store("t", after);
        let shared = |it: &ProgramContexts| Arc::clone(&it.0["t"]["big"]);
        assert!(Arc::ptr_eq(&shared(&snapshot), &shared(&contexts)), "unchanged values are shared");
        contexts = snapshot;
        assert_eq!(contexts.get("t", &Map::new()), big);
    }

    #[test]
    fn a_task_starts_with_its_initial_context() {
        let first = Map::from_iter([("a".to_owned(), json!(1))]);
        assert_eq!(ProgramContexts::default().get("t", &first), first);
    }
}
