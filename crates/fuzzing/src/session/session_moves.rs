//! Events of agents, clients and people, five bytes for each move.
//!
//! Letters and digits have a meaning in every position, so that a story can be written by hand with
//! one move per line: `t012` and a line feed propose a call.

use arbitrary::Arbitrary;
use jackline_engine::digest::Digest128;
use jackline_engine::event::{
    AdvisorAnswered, AttemptEnded, AttemptResult, AttemptStage, AttemptStarted, CallReference,
    ChangeReason, CompactionFinished, Control, IterationEnded, ModelChanged, OutputProposed,
    PlanProposed, PromptSource, ReportedStage, ReportedTests, ShownLines, Stage, UsageReported,
    WorkspaceChanged,
};
use jackline_engine::id::{AttemptId, RequestId};
use jackline_engine::{
    ActorId, Arguments, CallId, CallStatus, ControlAction, Event, EventKind, Payload,
    PromptSubmitted, SessionEnded, SessionId, SessionStarted, StopProposed, ToolFinished, ToolName,
    ToolProposed, json,
};
use serde_json::{Value, json};

use super::random_world::RandomWorld;

/// The letters of the events, in the order of the wire format. `r` repeats the previous move.
pub(super) const KINDS: &[u8] = b"sptflouciwxagevmkz";
const REPEAT: u8 = b'r';

/// How often a move can be repeated.
const REPEATS_MAX: u8 = 80;

const TOOLS: [&str; 10] =
    ["lint", "test", "build", "deploy", "edit", "read", "bash", "delete", "think", "unheard_of"];

/// One move.
#[derive(Debug, Clone, Copy, Default, Arbitrary)]
pub(super) struct SessionMove {
    /// The event: one of [`KINDS`].
    pub(super) kind: u8,
    /// The actor.
    who: u8,
    /// The call, attempt or request.
    what: u8,
    /// The tool, status or action.
    how: u8,
    /// The state of the world during the event.
    pub(super) world: u8,
}

impl SessionMove {
    /// A simple move of the main agent.
    pub(super) fn of(kind: u8) -> Self {
        Self { kind, ..Self::default() }
    }

    /// Adds the move, or repeats the previous one, each time with another subject.
    pub(super) fn spread(self, moves: &mut Vec<Self>) {
        match moves.last() {
            Some(last) if self.kind == REPEAT => {
                let last = *last;
                for number in 1..=self.what % REPEATS_MAX {
                    let step = if self.how.is_multiple_of(2) { number } else { 0 };
                    moves.push(Self {
                        what: last.what.wrapping_add(step),
                        who: last.who.wrapping_add(step & self.who),
                        ..last
                    });
                }
            }
            _ => moves.push(self),
        }
    }

    /// The event of this move.
    pub(super) fn event(self, world: &RandomWorld) -> Event {
        Event {
            session: SessionId::parse("s").unwrap(),
            id: None,
            at: (self.world % 32 == 31).then(|| world.wall()),
            actor: if digit(self.who).is_multiple_of(4) {
                ActorId::main()
            } else {
                ActorId::parse(self.name('a', self.who)).unwrap()
            },
            kind: self.kind(world),
            meta: (self.world % 64 == 63).then(|| json!({ "note": [self.what, null] })),
        }
    }

    fn kind(self, world: &RandomWorld) -> EventKind {
        let at = KINDS.iter().position(|kind| *kind == self.kind);
        let letter = KINDS.get(at.unwrap_or(usize::from(self.kind) % KINDS.len()));
        match letter.copied().unwrap_or_default() {
            b's' => EventKind::SessionStarted(SessionStarted {
                client: self.as_str(),
                deadline: self.flag().then(|| world.wall().plus_ms(u64::from(self.what) * 5_000)),
                role: self.as_str(),
                ..SessionStarted::default()
            }),
            b'p' => EventKind::PromptSubmitted(PromptSubmitted {
                source: pick(PromptSource::ALL, self.how),
                text: self.payload(),
            }),
            b't' => EventKind::ToolProposed(ToolProposed {
                call: self.call(),
                tool: self.tool(),
                args: self.arguments(),
                cwd: self.as_str(),
                asks_person: self.flag(),
            }),
            b'f' => self.finished(),
            b'l' => EventKind::PlanProposed(PlanProposed {
                plan: self.flag().then(|| self.value()),
                plan_text: (!self.flag()).then(|| self.text()),
            }),
            b'o' => EventKind::OutputProposed(OutputProposed {
                name: self.as_str(),
                text: self.payload(),
                truncated: self.flag(),
            }),
            b'u' => self.usage(),
            b'c' => EventKind::CompactionFinished(CompactionFinished {
                freed: self.flag().then(|| self.count()),
                summary: self.payload(),
            }),
            b'i' => EventKind::IterationEnded(IterationEnded {
                phase: self.as_str(),
                task: self.as_str(),
                tests: self.flag().then(|| ReportedTests { failed: self.count(), passed: 1 }),
                build: self.as_str(),
                files_changed: self.flag().then(|| self.count()),
                error: self.payload(),
            }),
            b'w' => EventKind::WorkspaceChanged(WorkspaceChanged {
                files: self.as_str().into_iter().collect(),
                more: self.flag(),
            }),
            b'x' => EventKind::StopProposed(StopProposed {
                reason: self.as_str(),
                output: self.payload(),
                background: u64::from(digit(self.how) == 9),
            }),
            b'a' => EventKind::AttemptStarted(AttemptStarted { attempt: self.attempt() }),
            b'g' => EventKind::AttemptStage(AttemptStage {
                attempt: self.attempt(),
                stage: ReportedStage::Builtin(Stage::Validated),
            }),
            b'e' => EventKind::AttemptEnded(AttemptEnded {
                attempt: self.attempt(),
                result: pick(AttemptResult::ALL, self.how),
            }),
            b'v' => EventKind::AdvisorAnswered(AdvisorAnswered {
                model: self.as_str(),
                instruction: (digit(self.how) < 8).then(|| self.advice()),
                error: self.payload(),
            }),
            b'm' => EventKind::ModelChanged(ModelChanged {
                from: self.as_str(),
                to: self.name('m', self.what),
                reason: ChangeReason::parse(pick_of(
                    &["blocked", "overload", "return", ""],
                    self.how,
                )),
            }),
            b'k' => EventKind::Control(Control {
                action: pick(ControlAction::ALL, self.how),
                by: self.as_str(),
                why: self.flag().then(|| "\u{10ffff}".repeat(usize::from(self.what) * 4)),
                call: self.call(),
                ask: self.flag().then(|| u64::from(self.what)),
                seconds: self.flag().then(|| self.count()),
                constraint: self.as_str(),
            }),
            _ => EventKind::SessionEnded(SessionEnded::default()),
        }
    }

    fn finished(self) -> EventKind {
        let call = self.call();
        let args = match self.arguments() {
            Arguments::Parsed(value) => json::canonical_digest(&value),
            Arguments::Text(text) => Digest128::of(text.head().as_bytes()),
        };
        EventKind::ToolFinished(ToolFinished {
            of: call.is_none().then(|| CallReference { tool: self.tool(), args }),
            call,
            status: pick(CallStatus::ALL, b'0' + self.who.wrapping_sub(b'0') / 4),
            result: self.payload(),
            exit_code: self.flag().then(|| i64::from(self.how) - 128),
            seen: if self.flag() {
                vec![ShownLines { path: "report.md".into(), from: 1, to: self.count(), of: None }]
            } else {
                Vec::new()
            },
            background: self.what % 32 == 31,
        })
    }

    fn usage(self) -> EventKind {
        EventKind::UsageReported(UsageReported {
            request: self.flag().then(|| RequestId::parse(self.name('r', self.what)).unwrap()),
            model: self.as_str(),
            input: self.count(),
            cache_read: u64::from(self.how),
            output: self.count() / 3,
            window: self.flag().then_some(200_000),
            cost_micros: self.flag().then(|| self.count()),
            unknown: self.what % 32 == 31,
            ..UsageReported::default()
        })
    }

    /// The call id; missing for clients without call ids.
    fn call(self) -> Option<CallId> {
        (self.what % 16 != 15).then(|| CallId::parse(self.name('c', self.what)).unwrap())
    }

    fn tool(self) -> ToolName {
        ToolName::parse(TOOLS.get(usize::from(digit(self.how))).copied().unwrap_or("edit")).unwrap()
    }

    fn attempt(self) -> AttemptId {
        AttemptId::parse(self.name('t', self.what % 8)).unwrap()
    }

    /// A name, sometimes of the maximum length.
    fn name(self, kind: char, number: u8) -> String {
        let name = format!("{kind}{number}");
        if self.world & 0x40 == 0 { name } else { format!("{name:x<128}") }
    }

    /// Arguments, some of which are always the same.
    fn arguments(self) -> Arguments {
        if self.world % 16 == 13 {
            return Arguments::Text(self.text());
        }
        Arguments::Parsed(json!({ "path": if self.flag() { "report.md" } else { "src/a.rs" } }))
    }

    fn value(self) -> Value {
        json!({ "steps": [self.what, "s", null], "n": u64::from(self.how) << 56 })
    }

    fn text(self) -> Payload {
        let texts = ["{\"path\":1}", "{\"a\"", "[]", "\u{0}\u{1b}[0m\n", ""];
        Payload::Inline(pick_of(&texts, self.what).to_owned())
    }

    /// The instruction of an advisor, sometimes longer than allowed.
    fn advice(self) -> Payload {
        if self.flag() {
            Payload::Inline("<'&é".repeat(usize::from(self.what) * 9))
        } else {
            self.text()
        }
    }

    fn payload(self) -> Option<Payload> {
        self.flag().then(|| self.text())
    }

    fn as_str(self) -> Option<String> {
        (self.world & 4 != 0)
            .then(|| pick_of(&["x", "", "..", "/abs", "a/../../b"], self.what).to_owned())
    }

    fn flag(self) -> bool {
        self.world & 1 != 0
    }

    /// A number of any size.
    fn count(self) -> u64 {
        match self.what {
            255 => u64::MAX,
            what if what >= 128 => 1 << (what % 64),
            what => u64::from(what),
        }
    }
}

/// A number from 0 to 9 from any byte.
fn digit(byte: u8) -> u8 {
    byte.wrapping_sub(b'0') % 10
}

fn pick<T: Copy>(words: &[(&str, T)], byte: u8) -> T {
    pick_of(words, byte).1
}

#[expect(clippy::indexing_slicing, reason = "a remainder is within the list, and no list is empty")]
fn pick_of<T: Copy>(list: &[T], byte: u8) -> T {
    list[usize::from(byte.wrapping_sub(b'0')) % list.len()]
}
