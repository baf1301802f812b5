// A client: it starts the weather server as a child process, lists what the server offers, calls tools, shows progress,
// answers the server's question to the user, and reads a resource. Closing the client ends the child process.

import { fileURLToPath } from "node:url";
import { connect } from "catenary";

const weather = fileURLToPath(new URL("../weather/main.js", import.meta.url));

const client = await connect(
  { command: process.execPath, args: [weather] },
  {
    // Called when the server asks the user something. This user always sees clouds.
    elicit: ({ message }) => {
      console.log(`The server asks: ${message}`);
      return { action: "accept", content: { sky: "cloudy" } };
    },
  },
);

try {
  console.log(`Connected to ${client.server?.name} ${client.server?.version} in revision ${client.revision}`);

  // Lists come in pages; the iterators fetch them as needed.
  for await (const tool of client.tools()) console.log(`Tool ${tool.name}: ${tool.description}`);
  for await (const resource of client.resources()) console.log(`Resource ${resource.uri}: ${resource.name}`);
  for await (const prompt of client.prompts()) console.log(`Prompt ${prompt.name}: ${prompt.description}`);

  console.log(textOf(await client.callTool("get_weather", { location: "New York" })));

  const forecast = await client.callTool(
    "forecast",
    { location: "Tokyo", days: 3 },
    { onProgress: ({ message }) => console.log(`Progress: ${message}`) },
  );
  console.log("Highs:", forecast.structuredContent);

  console.log(textOf(await client.callTool("report_sighting", { location: "London" })));

  const { contents } = await client.readResource("file:///project/data.json");
  console.log(`Sightings: ${contents[0]?.text}`);

  const { messages } = await client.getPrompt("code_review", { language: "python" });
  console.log(`Prompt: ${messages[0]?.content.text}`);

  // A tool that fails returns a result and does not throw, so that the model can read it and try something else.
  const failed = await client.callTool("get_weather", { location: "Atlantis" });
  console.log(`${failed.isError ? "Failed" : "Answered"}: ${textOf(failed)}`);
} finally {
  await client.close();
}

/** @param {{ content: readonly { type: string, text?: string }[] }} result */
function textOf({ content }) {
  return content.map(({ type, text }) => (type === "text" ? text : `[${type}]`)).join("\n");
}
