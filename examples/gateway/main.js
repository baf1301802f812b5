// A gateway built from a config file, and a client of it, in one process. Its upstreams are three programs, each started
// by the first request that needs it. `npx catenary up examples/gateway/catenary.json` serves the same gateway.

import { fileURLToPath } from "node:url";
import { connect } from "catenary";
import { createGateway, loadConfig } from "catenary/config";

const config = await loadConfig(fileURLToPath(new URL("catenary.json", import.meta.url)));
const gateway = await createGateway(config);

const client = await connect(gateway, {
  // This user allows everything about London, and sees clouds there.
  elicit: ({ message }) => {
    console.log(`Asked: ${message}`);
    if (message.includes("Tokyo")) return { action: "decline" };
    return { action: "accept", content: message.startsWith("May ") ? {} : { sky: "cloudy" } };
  },
});

try {
  console.log(`Connected to ${client.server?.name}, which has ${Object.keys(gateway.status()).join(", ")}`);
  for await (const tool of client.tools()) console.log(`Tool ${tool.name}`);
  for await (const { uriTemplate } of client.resourceTemplates()) console.log(`Template ${uriTemplate}`);

  console.log(textOf(await client.callTool("coast_get_weather", { location: "New York" })));
  console.log(textOf(await client.callTool("report_sighting", { location: "London" })));
  console.log(textOf(await client.callTool("report_sighting", { location: "Tokyo" })));
  const { contents } = await client.readResource("pharo://system/version");
  console.log(contents[0]?.text);

  for (const [name, { state, restarts }] of Object.entries(gateway.status())) {
    console.log(`${name}: ${state}, ${restarts} restarts`);
  }
} finally {
  await client.close();
  await gateway.close(); // ends the three programs
}

/** @param {{ content: readonly { type: string, text?: string }[] }} result */
function textOf({ content }) {
  return content.map(({ type, text }) => (type === "text" ? text : `[${type}]`)).join("\n");
}
