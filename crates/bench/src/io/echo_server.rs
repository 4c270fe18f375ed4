//! A minimal MCP server: it answers every call with the argument of the call.

use std::io::{self, BufRead as _, Write as _};

use serde_json::{Value, json};

/// Answers until the input ends.
pub(crate) fn serve() -> io::Result<()> {
    let mut output = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?).unwrap_or_default();
        let Some(id) = request.get("id") else { continue };
        let text = request.pointer("/params/arguments/text").cloned().unwrap_or_default();
        let result = json!({ "content": [{ "type": "text", "text": text }] });
        let answer = json!({ "jsonrpc": "2.0", "id": id, "result": result });
        output.write_all(format!("{answer}\n").as_bytes())?;
        output.flush()?;
    }
    Ok(())
}
