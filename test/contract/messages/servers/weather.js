// The server of seed 003: the weather example under the seed's name, with the resource whose change the seed
// shows. Every call of a tool changes it, so that a transcript can bring the change about.

import { createWeather } from "../../../../examples/weather/server.js";

const DATA = "file:///project/data.json";

const weather = createWeather({ name: "my-mcp-server", description: "Get weather for a location" });
weather.resource(DATA, { name: "Data" }, () => "{}");

/** A server is a handler, so whoever wants more wraps it. */
export const server = async (request, context) => {
  if (request.method === "tools/call") weather.resourceUpdated(DATA);
  return weather(request, context);
};
