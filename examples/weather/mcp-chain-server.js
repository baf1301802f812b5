// The server that the document of mcp-chain describes: a tool, a resource and a prompt.
// `npx catenary serve examples/weather/mcp-chain-server.js --compat chain` answers as the document says.

import { createWeather } from "./server.js";

export const server = createWeather({ name: "mcp-chain-server" });
