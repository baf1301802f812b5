// A server that sends malformed data: lists with invalid items, content without data, numbers instead of strings. Written
// by hand, because our server would not send such data.

import { createInterface } from "node:readline";

const PIXEL = "R0lGODlhAQABAAAAACw=";

/** @type {Record<string, unknown>} */
const RESULTS = {
  texts: { content: [{ type: "text" }, { type: "text", text: 5 }, null, 7, "x", { type: "text", text: "valid" }] },
  pictures: { content: [{ type: "image" }, { type: "image", data: PIXEL }, { type: "audio", data: "!", mimeType: 5 }] },
  resources: {
    content: [
      { type: "resource" },
      { type: "resource", resource: { uri: 5, text: 5 } },
      { type: "resource", resource: { uri: "a://b", blob: PIXEL, mimeType: {} } },
      { type: "resource_link" },
      { type: "resource_link", uri: "a://c", name: {}, mimeType: 7, size: "big" },
    ],
  },
  nothing: {},
  text: { content: "text" },
  long: { content: [{ type: "text", text: "0123456789\n".repeat(500_000) }] },
  visit: null,
};

/** @type {Record<string, unknown>} */
const PARTS = {
  "a://number": [{ uri: "a://number", text: 5 }],
  "a://bytes": [{ uri: "a://bytes", blob: "!!!" }],
  "a://neither": [{ uri: "a://neither" }],
  "a://none": [],
  "a://no-list": "text",
  "a://half": [
    { uri: "a://half", blob: "!!!" },
    { uri: "a://half", text: "half" },
  ],
};

const PROMPTS = [
  { name: "odd", arguments: {} },
  { name: "worse", arguments: [null, 5, {}, { name: 7 }, { name: "ok", description: 3 }] },
];

const PAGES = { elicitations: [{ url: "file:///etc/passwd" }, { url: "https://a.example/b" }, null] };

/** @param {string} method @param {any} params */
function answer(method, params) {
  const capabilities = { tools: {}, resources: {}, prompts: {} };
  switch (method) {
    case "initialize":
      return { protocolVersion: params.protocolVersion, capabilities, serverInfo: { name: "malformed", version: "1" } };
    case "tools/list":
      return { tools: [...Object.keys(RESULTS).map((name) => ({ name, inputSchema: { type: "object" } })), null, 3] };
    case "tools/call":
      return RESULTS[params.name];
    case "resources/read":
      return { contents: PARTS[params.uri] };
    case "prompts/list":
      return { prompts: PROMPTS };
    case "prompts/get":
      return { messages: [{ role: "user", content: { type: "text" } }, { role: 5 }, null, "x"] };
    default:
      return undefined;
  }
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const result = answer(method, params);
  const error =
    method === "tools/call" ? { code: -32042, message: "Visit", data: PAGES } : { code: -32601, message: "Unknown" };
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, ...(result ? { result } : { error }) })}\n`);
});
