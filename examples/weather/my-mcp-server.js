// The server that a widespread protocol reference describes: a tool, a resource that changes with each call, and a prompt.
// `npx catenary serve examples/weather/my-mcp-server.js --compat reference` answers as the reference says.

import { createWeather } from "./server.js";

const DATA = "file:///project/data.json";

/** @type {string[]} */
const asked = [];

export const server = createWeather({
  name: "my-mcp-server",
  description: "Get weather for a location",
  location: { type: "string" },
  onCall: (location) => {
    asked.push(location);
    server.resourceUpdated(DATA);
  },
}).resource(DATA, { name: "Data", description: "The locations that were asked for" }, () => asked);
