// The server of seed 003: the weather example under the seed's name, with the resource that changes in the seed. Each tool
// call updates it, so that a transcript can cause the notification. A tool that is not listed fails with the kind of error
// that its name says.

import { McpError } from "catenary";
import { createWeather } from "../../../../examples/weather/server.js";

const DATA = "file:///project/data.json";

const weather = createWeather({ name: "my-mcp-server", description: "Get weather for a location" });
weather.resource(DATA, { name: "Data" }, () => "{}");

export const server = async (request, context) => {
  const [, kind] = /^fail with (\w+)$/.exec(request.params.name ?? "") ?? [];
  if (kind !== undefined) throw McpError.of(kind, "as the transcript wants it");
  if (request.method === "tools/call") weather.resourceUpdated(DATA);
  return weather(request, context);
};
