// Prints the messages between a client and the weather server in all five revisions of the protocol: the same client
// makes the same calls to the same server. `→` goes to the server, `←` comes back, `#` begins a comment.

import { fileURLToPath } from "node:url";
import { styleText } from "node:util";
import { connect } from "catenary";
import { childTransport } from "catenary/stdio";

const REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
const weather = fileURLToPath(new URL("../weather/main.js", import.meta.url));

const hasColors = process.stdout.isTTY && process.stdout.hasColors();
/** @type {(style: Parameters<typeof styleText>[0], text: string) => string} */
const paint = (style, text) => (hasColors ? styleText(style, text) : text);

const comment = (text) => console.log(paint("gray", `# ${text}`));
const sent = (message) => console.log(`${paint("green", "→")} ${JSON.stringify(message)}`);
const received = (message) => console.log(`${paint("cyan", "←")} ${JSON.stringify(message)}`);

/**
 * Wraps a transport, which has three methods, so that it prints each message.
 * @param {import("catenary/stdio").Transport} transport
 * @returns {import("catenary/stdio").Transport}
 */
function printing(transport) {
  return {
    start: (receive) =>
      transport.start((inbound, carrier) => {
        if (inbound.kind === "message") received(inbound.message);
        receive(inbound, carrier);
      }),
    send: (message, options) => {
      sent(message);
      return transport.send(message, options);
    },
    close: (budgetMs) => transport.close(budgetMs),
  };
}

async function converse(revision) {
  const transport = printing(childTransport({ command: process.execPath, args: [weather] }));
  const client = await connect(transport, {
    revision,
    elicit: () => ({ action: "accept", content: { sky: "sunny" } }),
  });
  try {
    comment("a list");
    await client.listTools();
    comment("a tool that reports its progress");
    await client.callTool("forecast", { location: "Tokyo", days: 2 }, { onProgress: () => undefined });
    comment("a tool that asks the user during the call");
    // Revisions without elicitation refuse this; the error is printed above the comment.
    await client
      .callTool("report_sighting", { location: "London" })
      .catch(({ message }) => comment(`refused: ${message}`));
    comment("a resource");
    await client.readResource("file:///project/data.json");
  } finally {
    await client.close();
  }
}

// Stdout closes early if it is piped into `head`.
process.stdout.on("error", () => process.exit());

for (const revision of REVISIONS) {
  console.log(paint("bold", `# Revision ${revision}`));
  await converse(revision);
  console.log();
}
