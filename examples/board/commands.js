// Commands to paste into a terminal: one for each style of the protocol, one that subscribes, and the entry for a
// client's config.

const JSON_BODY = "-H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream'";

/** A stateless request: everything about it is in its headers and its body. */
function stateless(url, method, params, name) {
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
    "Subscribe, in a terminal of its own": stateless(url, "subscriptions/listen", {
      notifications: { resourceSubscriptions: ["board://notes"] },
    }),
    "Call a tool in a single request (revision 2026-07-28)": stateless(url, "tools/call", pin("Buy chalk"), "pin"),
    "Call a tool in a session (revision 2025-11-25)": [
      `session=$(curl -sD - -o /dev/null ${url} ${JSON_BODY} \\`,
      `  ${post({ id: 0, method: "initialize", params: initialize })} | tr -d '\\r' | sed -n 's/^[Mm]cp-[Ss]ession-[Ii]d: //p')`,
      `curl -s ${url} ${JSON_BODY} -H "Mcp-Session-Id: $session" ${post({ method: "notifications/initialized" })}`,
      `curl -s ${url} ${JSON_BODY} -H "Mcp-Session-Id: $session" \\`,
      `  ${post({ id: 1, method: "tools/call", params: pin("Wipe the board") })}`,
    ].join("\n"),
    "Read the board": stateless(url, "resources/read", { uri: "board://notes" }, "board://notes"),
    "The entry for a client's config": JSON.stringify({ mcpServers: { board: { type: "http", url } } }),
  };
}
