// Prints a conversation with the weather server in all five revisions of the protocol: the same calls of the same
// client to the same server, as they stand on the wire. `→` goes to the server, `←` comes back; lines that begin
// with `#` are remarks.

import { fileURLToPath } from "node:url";
import { styleText } from "node:util";
import { connect } from "catenary";
import { childTransport } from "catenary/stdio";

const REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
const weather = fileURLToPath(new URL("../weather/main.js", import.meta.url));

const coloured = process.stdout.isTTY && process.stdout.hasColors();
/** @type {(style: Parameters<typeof styleText>[0], text: string) => string} */
const paint = (style, text) => (coloured ? styleText(style, text) : text);

const remark = (text) => console.log(paint("gray", `# ${text}`));
const sent = (message) => console.log(`${paint("green", "→")} ${JSON.stringify(message)}`);
const received = (message) => console.log(`${paint("cyan", "←")} ${JSON.stringify(message)}`);

/**
 * A transport that shows what passes. A wire has three methods, so it is wrapped in three lines.
 * @param {import("catenary/stdio").Transport} wire
 * @returns {import("catenary/stdio").Transport}
 */
function shown(wire) {
  const shownFirst = (go) => (message, options) => {
    sent(message);
    return go(message, options);
  };
  return {
    start: (receive) =>
      wire.start((inbound) => {
        if (inbound.message !== undefined) received(inbound.message);
        receive({ ...inbound, reply: shownFirst((message, options) => inbound.reply(message, options)) });
      }),
    send: shownFirst((message, options) => wire.send(message, options)),
    close: () => wire.close(),
  };
}

async function converse(revision) {
  const wire = shown(childTransport({ command: process.execPath, args: [weather] }));
  const client = await connect(wire, {
    revision,
    elicit: () => ({ action: "accept", content: { sky: "sunny" } }),
  });
  try {
    remark("what there is");
    await client.listTools();
    remark("a tool that reports its progress");
    await client.callTool("forecast", { location: "Tokyo", days: 2 }, { onProgress: () => undefined });
    remark("a tool that asks the person in the middle of the call");
    // A revision without such questions refuses; the line above the remark says so on the wire.
    await client
      .callTool("report_sighting", { location: "London" })
      .catch(({ message }) => remark(`refused: ${message}`));
    remark("a resource");
    await client.readResource("file:///project/data.json");
  } finally {
    await client.close();
  }
}

// Whoever reads may have seen enough, as `head` has.
process.stdout.on("error", () => process.exit());

for (const revision of REVISIONS) {
  console.log(paint("bold", `# Revision ${revision}`));
  await converse(revision);
  console.log();
}
