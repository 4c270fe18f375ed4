// The official client. It starts the server with the given command line, calls its tools, and
// prints each answer as one line of JSON. It reads all pages of a result.
import { join } from "node:path";

const [modules, calls, ...server] = process.argv.slice(2);
const sdk = (path) => import(join(modules, "node_modules/@modelcontextprotocol/sdk/dist/esm", path));
const { Client } = await sdk("client/index.js");
const { StdioClientTransport } = await sdk("client/stdio.js");

const [command, ...args] = server;
const transport = new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" });
const client = new Client({ name: "test", version: "1" });
await client.connect(transport);
const print = (value) => console.log(JSON.stringify(value));
print((await client.listTools()).tools);
for (const { name, arguments: given } of JSON.parse(calls)) {
  // The number of progress messages depends on timing: the client drops those that arrive with the
  // result.
  let progress = false;
  const onprogress = () => (progress = true);
  const call = (name, given) =>
    client.callTool({ name, arguments: given }, undefined, { onprogress }).catch((error) => ({ thrown: error.message }));
  let result = await call(name, given);
  let pages = 1;
  let text = result.content?.[0]?.text;
  for (let page = result._meta?.["jackline/page"]; page?.next_cursor; pages += 1) {
    const next = await call("jackline_page", { cursor: page.next_cursor });
    text += next.content[0].text;
    page = next._meta["jackline/page"];
  }
  if (pages > 1) {
    result = { pages, text, structured: Object.keys(result.structuredContent ?? {}) };
  }
  print({ result, progress });
}
await client.close();
