// A client of the newest revision and a server of the oldest: directly, they do not understand each other; through the
// command `catenary run`, they do.

import { fileURLToPath } from "node:url";
import { connect } from "catenary";

const NEWEST = "2026-07-28";
const SERVER = fileURLToPath(new URL("old-server.js", import.meta.url));
const CATENARY = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));

const options = {
  revision: NEWEST,
  // The answer of the client's model.
  sample: () => ({ role: "assistant", content: { type: "text", text: "Ada" }, model: "made up" }),
};

await connect({ command: process.execPath, args: [SERVER] }, options).then(
  () => console.log("Directly: connected"),
  () => console.log(`Directly: the server does not speak ${NEWEST}`),
);

const client = await connect({ command: process.execPath, args: [CATENARY, "run", "--", "node", SERVER] }, options);
try {
  console.log(`Through catenary run: ${client.server?.name} ${client.server?.version}, revision ${client.revision}`);
  for await (const { name } of client.tools()) console.log(`Tool ${name}`);
  const { content } = await client.callTool("ask_name", { animal: "hen" });
  console.log(content[0]?.text);
} finally {
  await client.close();
}
