// What a person can paste into a terminal to speak with the board: a command for each style of the protocol, one
// that listens, and the entry that a client wants.

const JSON_BODY = "-H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream'";

/** A request that stands by itself says all about itself, in its headers and in its body. */
function exchange(url, method, params, name) {
  const meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const body = { jsonrpc: "2.0", id: 1, method, params: { ...params, _meta: meta } };
  const headers = ["MCP-Protocol-Version: 2026-07-28", `Mcp-Method: ${method}`];
  if (name !== undefined) headers.push(`Mcp-Name: ${name}`);
  const written = headers.map((header) => `-H '${header}'`).join(" ");
  return `curl -sN ${url} ${JSON_BODY} \\\n  ${written} \\\n  -d '${JSON.stringify(body)}'`;
}

/** @param {string} url */
export function commandsFor(url) {
  const initialize = {
    protocolVersion: "2025-11-25",
    capabilities: {},
    clientInfo: { name: "curl", version: "1" },
  };
  const post = (message) => `-d '${JSON.stringify({ jsonrpc: "2.0", ...message })}'`;
  const pin = (text) => ({ name: "pin", arguments: { author: "curl", text } });
  return {
    "Listen, in a terminal of its own": exchange(url, "subscriptions/listen", {
      notifications: { resourceSubscriptions: ["board://notes"] },
    }),
    "Call a tool, each request by itself (revision 2026-07-28)": exchange(url, "tools/call", pin("Buy chalk"), "pin"),
    "Call a tool in a session (revision 2025-11-25)": [
      `session=$(curl -sD - -o /dev/null ${url} ${JSON_BODY} \\`,
      `  ${post({ id: 0, method: "initialize", params: initialize })} | tr -d '\\r' | sed -n 's/^[Mm]cp-[Ss]ession-[Ii]d: //p')`,
      `curl -s ${url} ${JSON_BODY} -H "Mcp-Session-Id: $session" ${post({ method: "notifications/initialized" })}`,
      `curl -s ${url} ${JSON_BODY} -H "Mcp-Session-Id: $session" \\`,
      `  ${post({ id: 1, method: "tools/call", params: pin("Wipe the board") })}`,
    ].join("\n"),
    "Read what is there": exchange(url, "resources/read", { uri: "board://notes" }, "board://notes"),
    "The entry that a client wants": JSON.stringify({ mcpServers: { board: { type: "http", url } } }),
  };
}
