//! The official Rust client, used with the same servers and calls.

use std::process::Command;

use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::RunningService;
use rmcp::transport::TokioChildProcess;
use rmcp::{RoleClient, ServiceExt as _};
use serde_json::{Value, json};

type RustMcpClient = RunningService<RoleClient, ()>;

/// Calls tools of the server that a command starts. Returns the tools first, then one result per
/// call. All pages are read.
pub(crate) fn call_tools(command: Command, calls: &Value) -> Vec<Value> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let command = tokio::process::Command::from(command);
        let client = ().serve(TokioChildProcess::new(command).unwrap()).await.unwrap();
        let tools = client.list_all_tools().await.unwrap();
        let mut answers = vec![serde_json::to_value(tools).unwrap()];
        for call in calls.as_array().unwrap() {
            answers.push(call_with_all_pages(&client, call).await);
        }
        client.cancel().await.unwrap();
        answers
    })
}

async fn call_with_all_pages(client: &RustMcpClient, call: &Value) -> Value {
    let name = call.get("name").and_then(Value::as_str).unwrap();
    let first = match call_tool(client, name, call.get("arguments").unwrap()).await {
        Ok(first) => serde_json::to_value(first).unwrap(),
        Err(error) => return json!({ "thrown": error }),
    };
    let cursor = |result: &Value| {
        result
            .pointer("/_meta/jackline~1page/next_cursor")
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let text = |result: &Value| {
        result.pointer("/content/0/text").and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let (mut pages, mut full_text, mut next) = (1, text(&first), cursor(&first));
    while let Some(page_cursor) = next {
        let page = call_tool(client, "jackline_page", &json!({ "cursor": page_cursor })).await;
        let page = serde_json::to_value(page.unwrap()).unwrap();
        full_text.push_str(&text(&page));
        next = cursor(&page);
        pages += 1;
    }
    if pages > 1 { json!({ "pages": pages, "text": full_text }) } else { first }
}

async fn call_tool(
    client: &RustMcpClient,
    name: &str,
    arguments: &Value,
) -> Result<CallToolResult, String> {
    let mut call = CallToolRequestParams::new(name.to_owned());
    call.arguments = arguments.as_object().cloned();
    client.call_tool(call).await.map_err(|error| error.to_string())
}
