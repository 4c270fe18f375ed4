//! The hooks of the toy: `{"at": "call", "session": …, "tool": …, "args": {…}}` in, and
//! `{"answer": "no", "why": …}` out. It can neither block a stop nor ask its person.

use jackline_clients::dialect::{
    Abilities, AnswerTexts, Dialect, HookCall, HookPayload, HookReply, HookReport, Malformed,
    Moment,
};
use jackline_clients::payload::PayloadFields;
use jackline_clients::surroundings::Surroundings;
use jackline_engine::{
    ActorId, Arguments, CallId, Decision, Event, EventId, EventKind, Payload, SessionId,
    SessionStarted, Status, StopProposed, ToolFinished, ToolName, ToolProposed, Verdict,
};
use jackline_runtime::WAITS_FOR_PERSON;
use serde_json::{Map, Value, json};

/// The fields that no event takes.
const IGNORED: [&str; 1] = ["at"];

/// A tool at whose name the translation panics.
const CRASHES: &str = "crash";

/// A tool at whose name the translation never ends.
const HANGS: &str = "hang";

pub(super) struct ToyDialect;

impl Dialect for ToyDialect {
    fn abilities(&self) -> Abilities {
        Abilities { blocks_stops: false, replaces_outputs: false }
    }

    fn surroundings(&self) -> Surroundings {
        Surroundings::of_process(None, false)
    }

    fn parse(&self, input: &[u8], _: &Surroundings) -> Result<HookPayload, Malformed> {
        let mut fields = PayloadFields::parse(input)?;
        let (hook, moment) = match fields.text("at").as_deref() {
            Some("start") => ("start", Moment::Report),
            Some("call") => ("call", Moment::BeforeCall),
            Some("done") => ("done", Moment::Report),
            Some("stop") => ("stop", Moment::Stop),
            Some(_) => ("", Moment::Unknown),
            None => return Err(Malformed::Missing("at")),
        };
        let session = fields.text("session").and_then(|session| SessionId::parse(session).ok());
        let call = HookCall { hook, moment, session, stop_blocked: false };
        Ok(HookPayload { call, fields })
    }

    fn translate(&self, payload: HookPayload, at: &Surroundings) -> Result<HookReport, Malformed> {
        let HookPayload { call, mut fields } = payload;
        let session = call.session.ok_or(Malformed::Missing("session"))?;
        let id = fields.text("id");
        let call_id = id.as_ref().and_then(|id| CallId::parse(id).ok());
        // Hooks may be installed twice, and are then asked twice: the second gets the answer of
        // the first.
        let event_id = id.filter(|_| call.moment == Moment::BeforeCall);
        let kind: EventKind = match call.moment {
            Moment::BeforeCall => {
                let tool = fields.text("tool").ok_or(Malformed::Missing("tool"))?;
                match tool.as_str() {
                    CRASHES => panic!("the toy has a bug"),
                    HANGS => loop {
                        std::thread::park();
                    },
                    _ => {}
                }
                let args = fields.object("args").ok_or(Malformed::Missing("args"))?;
                ToolProposed {
                    call: call_id,
                    tool: ToolName::parse(tool).map_err(|_| Malformed::Missing("tool"))?,
                    args: Arguments::Parsed(args),
                    ..ToolProposed::default()
                }
                .into()
            }
            Moment::Stop => StopProposed::default().into(),
            _ if call.hook == "done" => ToolFinished {
                call: call_id,
                status: if fields.flag("failed") { Status::Error } else { Status::Ok },
                result: fields.text("result").map(Payload::Inline),
                ..ToolFinished::default()
            }
            .into(),
            _ => SessionStarted {
                workspace: at.workspace().to_str().map(ToOwned::to_owned),
                client: Some(super::NAME.to_owned()),
                ..SessionStarted::default()
            }
            .into(),
        };
        let meta = fields.into_meta(call.hook, None, &IGNORED);
        let mut report = HookReport::new(session.clone(), ActorId::main());
        let event = Event::new(session, kind).with_meta(Some(meta));
        report.events.push(Event { id: event_id.and_then(|id| EventId::parse(id).ok()), ..event });
        Ok(report)
    }

    fn render(&self, call: &HookCall, verdict: &Verdict, texts: AnswerTexts) -> HookReply {
        let mut map = Map::new();
        let texts_for_agent = texts.agent.into_iter().chain(verdict.context.clone());
        let mut why = texts_for_agent.collect::<Vec<String>>().join("\n\n");
        if call.moment == Moment::BeforeCall && !verdict.lets_run() {
            // The toy can't ask its person, so a question is a denial for now.
            if verdict.decision == Decision::Ask {
                why = format!("{why}\n-> {WAITS_FOR_PERSON}");
            }
            refuse(&mut map, &why);
        }
        if !texts.person.is_empty() {
            map.insert("person".to_owned(), json!(texts.person));
        }
        HookReply::json(map)
    }

    fn hold(&self, _: &HookCall, reason: &str) -> HookReply {
        let mut map = Map::new();
        refuse(&mut map, reason);
        HookReply::json(map)
    }

    fn broken(&self, call: Option<&HookCall>, text: &str) -> HookReply {
        match call {
            Some(call) if call.moment == Moment::BeforeCall => self.hold(call, text),
            Some(_) => HookReply::silence(),
            None => HookReply::refusal(text),
        }
    }
}

fn refuse(map: &mut Map<String, Value>, why: &str) {
    map.insert("answer".to_owned(), json!("no"));
    map.insert("why".to_owned(), json!(why));
}
