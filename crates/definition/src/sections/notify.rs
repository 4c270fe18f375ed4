//! `notify`: how a person is told that they are needed.

use jackline_engine::definition::{Notifier, Occasion};

use super::prelude::*;
use crate::values::{address, shortened};

static KEYS: [Key; 1] =
    [key("notify", Map(&NOTIFY), "", "How a person is told that they are needed.")];

static NOTIFY: Keys = Keys {
    id: "notify",
    of: "`notify`",
    doc: "A notice is sent after the agent has its answer, by a process of its own. In the definition of a repository, \
          `command` and `webhook` do nothing until a person says `jackline trust`.",
    known: &[
        key(
            "command",
            OneOf(&[Text, Nothing]),
            "none",
            "A command line that is run with the notice as JSON on its standard input, and `JACKLINE_EVENT`, `JACKLINE_TEXT` and `JACKLINE_SESSION` in its environment. It may take 30 seconds.",
        ),
        key(
            "webhook",
            OneOf(&[ADDRESS, Nothing]),
            "none",
            "An address that the notice is posted to as JSON, by `curl`.",
        ),
        key(
            "desktop",
            Flag,
            "`false`",
            "Whether the client shows it on the desktop, where it can.",
        ),
        key(
            "on",
            List(0, &Word(&words_of::<_, { Occasion::ALL.len() }>(&Occasion::ALL))),
            "all of them",
            "What a person is told of.",
        ),
    ],
    needs: &[],
};

pub(crate) struct NotifySection;

impl Section for NotifySection {
    type Part = Vec<Demand<Notifier>>;

    const KEYS: &'static [Key] = &KEYS;
    const MAPPINGS: &'static [&'static Keys] = &[&NOTIFY];

    fn lower(_: &str, node: &Node, lowering: &mut Lowering<'_>, reader: &mut Reader<'_>) {
        lowering.definition.notify = read(node, reader).into_iter().collect();
    }

    fn take(source: &LayerSource<'_>) -> Self::Part {
        let notifiers = source.definition.notify.iter().cloned();
        source.list(notifiers.map(|notifier| Notifier { trusted: source.trusted, ..notifier }))
    }

    /// The notifiers of both layers. The same notifier in both is the higher layer's, which
    /// needs no trust.
    fn join(high: &LayerDemands, low: &mut LayerDemands, _join: &mut LayerJoin) -> Self::Part {
        let mut all = high.notify.clone();
        for notifier in &low.notify {
            let trusted = Notifier { trusted: true, ..notifier.value.clone() };
            if !all.iter().any(|known| known.value == notifier.value || known.value == trusted) {
                all.push(notifier.clone());
            }
        }
        all
    }

    fn describe(notifiers: &Self::Part, lines: &mut EffectiveLines<'_>) {
        for notifier in notifiers {
            lines.add(Subject::Notify, text(&notifier.value), notifier.layer);
        }
    }

    fn put(notifiers: Self::Part, definition: &mut Definition) {
        definition.notify = values(notifiers);
    }
}

/// None where the keys name no way to tell a person.
fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Notifier> {
    let on = Occasion::ALL.iter().map(|(_, occasion)| *occasion).collect();
    let mut notifier = Notifier { command: None, webhook: None, desktop: false, on, trusted: true };
    for (key, node) in reader.fields(node, &NOTIFY) {
        match key {
            "command" | "webhook" if node.value == NodeValue::Null => {}
            "command" => {
                notifier.command = reader.text(node, "`notify.command`").map(ToOwned::to_owned);
            }
            "webhook" => notifier.webhook = address(node, "`notify.webhook`", reader),
            "desktop" => notifier.desktop = reader.flag(node, "`notify.desktop`").unwrap_or(false),
            _ => {
                notifier.on = reader
                    .list(node, "`notify.on`")
                    .iter()
                    .filter_map(|item| reader.word(item, "an occasion", &Occasion::ALL))
                    .collect();
            }
        }
    }
    let Notifier { command, webhook, desktop, .. } = &notifier;
    (command.is_some() || webhook.is_some() || *desktop).then_some(notifier)
}

/// How a person is told, and of what. Only the host of an address is shown, because the rest is
/// often a secret.
pub fn text(notifier: &Notifier) -> String {
    let command = notifier.command.as_ref().map(|line| format!("by `{}`", shortened(line)));
    let webhook = notifier.webhook.as_ref().map(|address| format!("by {}", host(address)));
    let desktop = notifier.desktop.then(|| "on the desktop".to_owned());
    let ways: Vec<String> = [command, webhook, desktop].into_iter().flatten().collect();
    let on: Vec<&str> = notifier.on.iter().map(|occasion| occasion.word()).collect();
    let on = if on.is_empty() { "nothing".to_owned() } else { on.join(", ") };
    let waits = !notifier.trusted && (notifier.command.is_some() || notifier.webhook.is_some());
    let waits = if waits { " (not run until trusted)" } else { "" };
    format!("tells a person {} of {on}{waits}", ways.join(" and "))
}

/// The server of an address.
pub fn host(address: &str) -> String {
    let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    // The part before an `@` may be a password.
    let host = host.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}")
}
