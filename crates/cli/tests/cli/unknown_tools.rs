//! Tests of calls of unknown tools and of wrong arguments: every surface answers them with the same
//! mechanism.

use serde_json::{Value, json};

use crate::hook_support::{SESSION, deny_answer, hook_answer, payload};
use crate::mcp_support::{WrapProcess, only_session, result_text, server_input};
use crate::run_support::{REPORT_COMPLETION, TaskDirectory, events_named, session_id, stop_code};
use crate::support::CliWorld;

/// A server with a tool whose arguments have a schema, and with a list of tools in two pages. It
/// announces another list when its tool `grow` is called.
const LISTING_CASES: &str = r#"*'"cursor":"2"'*) answer "$id" '{"tools":[{"name":"grow"}]}' ;;
    *'"tools/list"'*) answer "$id" '{"tools":[{"name":"pay","inputSchema":{"type":"object","required":["amount"],"properties":{"amount":{"type":"integer"}}}}],"nextCursor":"2"}' ;;
    *'"name":"grow"'*) printf '%s\n' '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'; text "$id" grown ;;"#;

fn list_tools(proxy: &mut WrapProcess, id: u64) {
    proxy.request(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#));
    proxy.request(&format!(
        r#"{{"jsonrpc":"2.0","id":{},"method":"tools/list","params":{{"cursor":"2"}}}}"#,
        id + 1
    ));
}

#[test]
fn the_proxy_answers_a_call_of_a_tool_that_the_server_does_not_list() {
    let world = CliWorld::new("");
    let mut proxy = WrapProcess::start(&world, LISTING_CASES);
    // While no complete list is known, every tool may exist.
    assert_eq!(result_text(&proxy.call_tool(1, "refund", "{}"), 0), "said");
    list_tools(&mut proxy, 2);
    let unknown = proxy.call_tool(4, "pya", "{}");
    assert_eq!(unknown["result"]["isError"], true, "{unknown}");
    assert_eq!(
        result_text(&unknown, 0),
        "jackline: there is no tool `pya`\n-> did you mean `pay`? the known tools are `pay`, `grow` \
         and `jackline_page`"
    );
    assert_eq!(result_text(&proxy.call_tool(5, "pay", r#"{"amount":3}"#), 0), "said");
    // The server announces another list, so a tool may be new.
    assert!(
        proxy.request(&crate::mcp_support::call_request(6, "grow", "{}"))["method"].is_string()
    );
    assert!(proxy.next_line().contains("grown"));
    assert_eq!(result_text(&proxy.call_tool(7, "refund", "{}"), 0), "said");
    proxy.disconnect();
    assert!(!server_input(&world).contains("pya"), "the server gets no such call");
    world.verify_and_replay(&only_session(&world));
}

#[test]
fn the_proxy_checks_arguments_by_the_schema_of_the_server() {
    let world = CliWorld::new("");
    let mut proxy = WrapProcess::start(&world, LISTING_CASES);
    list_tools(&mut proxy, 1);
    for id in [3, 4] {
        let refused = proxy.call_tool(id, "pay", r#"{"amount":"three"}"#);
        assert_eq!(
            result_text(&refused, 0).lines().next(),
            Some(
                "jackline: the arguments of `pay` can't be used: `/amount`: expected integer, got \
                 string \"three\""
            )
        );
    }
    let stopped = proxy.call_tool(5, "pay", r#"{"amount":"three"}"#);
    assert!(result_text(&stopped, 0).contains("no more attempts are left"), "{stopped}");
    proxy.disconnect();
    assert!(!server_input(&world).contains("three"), "the server gets no such call");
    let session = only_session(&world);
    let records = world.records(&session);
    let stop = records.iter().find_map(|record| record.verdict.stop.as_ref()).unwrap();
    assert_eq!(stop.to_string(), "SYSTEM_ERROR{schema}");
    world.verify_and_replay(&session);
}

#[test]
fn a_run_answers_a_call_of_an_unknown_tool_under_every_preset() {
    let script = |calls: &str| format!("steps:\n{calls}  - text: I can't.\n");
    let unknown = "  - calls: [{ tool: raed_file, args: {} }]\n";
    for preset in ["autonomous", "strict"] {
        let world = CliWorld::new("");
        let definition = format!("extends: [{preset}]\n");
        let task = TaskDirectory::new(&world, &definition, &[("main", &script(unknown))]);
        let run = task.run(&[]);
        let called = &events_named(&run, "called")[0];
        assert_eq!(called["decision"], "deny", "{preset}: {run:?}");
        let why = called["why"].as_str().unwrap();
        assert!(
            why.contains("there is no tool `raed_file`")
                && why.contains("did you mean `read_file`? the known tools are `read_file`, "),
            "{preset}: {why}"
        );
        world.verify_and_replay(&session_id(&run));
    }
    // In observe mode, the call is permitted, and the tool itself answers.
    let world = CliWorld::new("");
    let task = TaskDirectory::new(&world, "mode: observe\n", &[("main", &script(unknown))]);
    task.append("tools: [read_file, list_dir]\n");
    let run = task.run(&[]);
    let records = world.records(&session_id(&run));
    let shown = serde_json::to_string(&records.iter().map(|it| &it.event).collect::<Vec<_>>());
    let shown = shown.unwrap();
    assert!(shown.contains("there is no tool `raed_file`"), "{shown}");
    assert!(shown.contains("The tools are `read_file`, `list_dir`."), "{shown}");
}

#[test]
fn a_run_ends_after_a_limited_number_of_calls_with_wrong_arguments() {
    let world = CliWorld::new("");
    let script = "steps:\n  - calls: [{ tool: read_file, args: { path: 5 } }]\nrepeat: true\n";
    let task = TaskDirectory::new(&world, REPORT_COMPLETION, &[("main", script)]);
    let run = task.run(&[]);
    assert_eq!(stop_code(&run), "SYSTEM_ERROR{schema}", "{run:?}");
    let called = events_named(&run, "called");
    let decisions: Vec<&str> = called.iter().map(|it| it["decision"].as_str().unwrap()).collect();
    assert_eq!(decisions, ["deny", "deny", "stop"]);
    let why = called[0]["why"].as_str().unwrap();
    assert!(why.contains("`/path`: expected string, got integer 5"), "{why}");
    world.verify_and_replay(&session_id(&run));
}

fn proposed(world: &CliWorld, call: &str, tool: &str) -> Value {
    let call = json!({ "tool_name": tool, "tool_use_id": call, "tool_input": {} });
    hook_answer(world, &payload(world, "PreToolUse", call))
}

#[test]
fn declaring_a_tool_leaves_the_tools_of_claude_code_known() {
    let world = CliWorld::new(
        "extends: [coding-agent]\nmode: enforce\ntools: { buy_ads: { kind: effect } }\n",
    );
    let known = [
        "Skill",
        "AskUserQuestion",
        "TaskCreate",
        "ListAgents",
        "ReportFindings",
        "ScheduleWakeup",
        "Workflow",
        "mcp__github__list_issues",
        "buy_ads",
    ];
    for tool in known {
        assert_eq!(proposed(&world, tool, tool), Value::Null, "{tool}");
    }
    assert_eq!(
        proposed(&world, "c1", "buy_adds"),
        deny_answer(
            "there is no tool `buy_adds`\n-> did you mean `buy_ads`? the known tools are \
             `buy_ads`, `Agent`, `AskUserQuestion`, `Bash`, `BashOutput`, `CronCreate`, \
             `CronDelete` and `CronList`, …"
        )
    );
    world.verify_and_replay(SESSION);
}

#[test]
fn check_names_the_known_tools_and_warns_about_a_closed_list() {
    let tools = "extends: [coding-agent]\ntools: { buy_ads: { kind: effect } }\n";
    let check = |world: &CliWorld| {
        let run = world.jackline(&["check"]);
        let json = world.jackline(&["check", "--json"]);
        let json: Value = serde_json::from_str(&json.stdout).unwrap();
        (run.stdout, json["known_tools"].clone())
    };
    let (text, json) = check(&CliWorld::new(tools));
    let line = "  known tools: buy_ads; the tools of the agent's client (Claude Code); tools with a \
                well-known name; all others are denied\n";
    assert!(text.contains(line), "{text}");
    assert!(!text.contains("warning"), "{text}");
    assert_eq!((&json["declared"], &json["others"]), (&json!(["buy_ads"]), &json!("denied")));
    let claude = json["clients"]["claude"].as_array().unwrap();
    assert!(claude.contains(&json!("Read")) && claude.contains(&json!("Skill")), "{json}");
    let (text, json) = check(&CliWorld::new(&format!("{tools}unknown_tools: deny\n")));
    assert!(text.contains("  known tools: buy_ads; all others are denied\n"), "{text}");
    let warning = "`unknown_tools: deny` denies every tool that `tools` does not declare, also those of \
                   the agent's client: `Read`, `Edit`, `Write`, `Bash`, `Glob`, `Grep`, `Agent`, `Task`";
    assert!(text.contains(warning), "{text}");
    assert_eq!(json["clients"]["claude"], json!([]));
}
