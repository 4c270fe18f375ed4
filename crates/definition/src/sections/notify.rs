//! `notify`: how Jackline notifies a person.

use jackline_engine::definition::{Notifier, Occasion};

use super::prelude::*;
use crate::values::{read_address, shorten};

static KEYS: [KeySpec; 1] = [key("notify", Map(&NOTIFY), "", "How Jackline notifies a person.")];

static NOTIFY: MappingSpec = MappingSpec {
    id: "notify",
    label: "`notify`",
    doc: "A separate process sends a notification after the agent has its verdict. In the definition of a repository, \
          `command` and `webhook` do nothing until a person runs `jackline trust`.",
    entries: &[
        key(
            "command",
            OneOf(&[Text, Nothing]),
            "none",
            "A command line to run. It receives the notification as JSON on standard input, and `JACKLINE_EVENT`, `JACKLINE_TEXT` and `JACKLINE_SESSION` in its environment. Its timeout is 30 seconds.",
        ),
        key(
            "webhook",
            OneOf(&[WEB_ADDRESS, Nothing]),
            "none",
            "An address. `curl` sends the notification there as JSON in a POST request.",
        ),
        key(
            "desktop",
            Flag,
            "`false`",
            "Whether the client shows a desktop notification, if it can.",
        ),
        key(
            "on",
            List(0, &Word(&words_of::<_, { Occasion::ALL.len() }>(&Occasion::ALL))),
            "all of them",
            "The occasions for a notification.",
        ),
    ],
    required: &[],
};

pub(crate) struct NotifySection;

impl Section for NotifySection {
    type Part = Vec<Demand<Notifier>>;

    const KEYS: &'static [KeySpec] = &KEYS;
    const MAPPINGS: &'static [&'static MappingSpec] = &[&NOTIFY];

    fn lower(
        _: &str,
        node: &YamlNode,
        lowering: &mut LoweringState<'_>,
        reader: &mut NodeReader<'_>,
    ) {
        lowering.definition.notify = read(node, reader).into_iter().collect();
    }

    fn take(source: &LayerSource<'_>) -> Self::Part {
        let notifiers = source.definition.notify.iter().cloned();
        source.list(notifiers.map(|notifier| Notifier { trusted: source.trusted, ..notifier }))
    }

    /// Takes the notifiers of both layers. A notifier that both layers have belongs to the higher
    /// layer, which needs no trust.
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

    fn describe(notifiers: &Self::Part, lines: &mut DemandLines<'_>) {
        for notifier in notifiers {
            lines.add(DemandSubject::Notify, text(&notifier.value), notifier.layer);
        }
    }

    fn put(notifiers: Self::Part, definition: &mut Definition) {
        definition.notify = values(notifiers);
    }
}

/// Reads a notifier. Returns `None` if the keys name no way to notify a person.
fn read(node: &YamlNode, reader: &mut NodeReader<'_>) -> Option<Notifier> {
    let on = Occasion::ALL.iter().map(|(_, occasion)| *occasion).collect();
    let mut notifier = Notifier { command: None, webhook: None, desktop: false, on, trusted: true };
    for (key, node) in reader.fields(node, &NOTIFY) {
        match key {
            "command" | "webhook" if node.value == YamlValue::Null => {}
            "command" => {
                notifier.command = reader.text(node, "`notify.command`").map(ToOwned::to_owned);
            }
            "webhook" => notifier.webhook = read_address(node, "`notify.webhook`", reader),
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

/// Describes a notifier. Only the host of an address is shown, because the rest is often secret.
pub fn text(notifier: &Notifier) -> String {
    let command = notifier.command.as_ref().map(|line| format!("by `{}`", shorten(line)));
    let webhook = notifier.webhook.as_ref().map(|address| format!("by {}", host(address)));
    let desktop = notifier.desktop.then(|| "on the desktop".to_owned());
    let ways: Vec<String> = [command, webhook, desktop].into_iter().flatten().collect();
    let on: Vec<&str> = notifier.on.iter().map(|occasion| occasion.as_str()).collect();
    let on = if on.is_empty() { "nothing".to_owned() } else { on.join(", ") };
    let waits = !notifier.trusted && (notifier.command.is_some() || notifier.webhook.is_some());
    let waits = if waits { " (not run until trusted)" } else { "" };
    format!("notifies a person {} about {on}{waits}", ways.join(" and "))
}

/// Returns the scheme and host of an address.
pub fn host(address: &str) -> String {
    let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    // The part before an `@` may be a password.
    let host = host.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}")
}
