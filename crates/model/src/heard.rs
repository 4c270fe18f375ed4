//! What was heard of an answer that nobody listened to until its end.

use crate::ask::{Call, Delta, Said};
use crate::draft::{complete, made_id};

/// Keeps what arrives.
#[derive(Debug, Default)]
pub struct Heard {
    said: Said,
}

impl Heard {
    /// One piece more.
    pub fn hear(&mut self, delta: Delta<'_>) {
        match delta {
            Delta::Text(more) => self.said.text.push_str(more),
            Delta::Call(name) => self.said.calls.push(Call {
                id: made_id(),
                name: name.to_owned(),
                arguments: String::new(),
            }),
            Delta::Arguments(number, more) => {
                if let Some(call) = self.said.calls.get_mut(number) {
                    call.arguments.push_str(more);
                }
            }
            Delta::Waiting => {}
            Delta::Again => self.said = Said::default(),
        }
    }

    /// What was said so far. What a provider wants back is not in it, as if another one had
    /// said it. The last call may be half of one.
    pub fn into_said(mut self) -> Said {
        if let Some((_, before)) = self.said.calls.split_last_mut() {
            before.iter_mut().for_each(complete);
        }
        self.said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrives_is_kept_and_what_broke_is_not() {
        let mut heard = Heard::default();
        for delta in [
            Delta::Text("void"),
            Delta::Call("void"),
            Delta::Again,
            Delta::Text("Look"),
            Delta::Waiting,
            Delta::Text("ing."),
            Delta::Call("a"),
            Delta::Arguments(0, "{\"y\""),
            Delta::Call("none"),
            Delta::Call("b"),
            Delta::Arguments(2, "{\"x\""),
            Delta::Arguments(0, ":1}"),
            Delta::Arguments(2, ":"),
        ] {
            heard.hear(delta);
        }
        let said = heard.into_said();
        let calls: Vec<(&str, &str)> =
            said.calls.iter().map(|call| (call.name.as_str(), call.arguments.as_str())).collect();
        let expected = vec![("a", "{\"y\":1}"), ("none", "{}"), ("b", "{\"x\":")];
        assert_eq!((said.text.as_str(), calls), ("Looking.", expected));
        assert!(said.calls[0].id != said.calls[1].id && said.kept.is_none());
    }
}
