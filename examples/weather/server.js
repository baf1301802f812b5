// A weather server: a tool, a resource and a prompt; then a tool that reports progress, a tool that asks the user a
// question, and a resource that changes. The weather is made up, so that every result is predictable.

import { createServer, UserError } from "catenary";

/** @type {Map<string, { high: number, sky: string }>} */
const stations = new Map([
  ["New York", { high: 72, sky: "sunny" }],
  ["London", { high: 59, sky: "cloudy" }],
  ["Tokyo", { high: 75, sky: "clear" }],
]);

/** @param {string} location */
function stationAt(location) {
  const station = stations.get(location);
  // It becomes a result with `isError`, which the model can read.
  if (station === undefined)
    throw new UserError(`There is no station in ${location}; try ${[...stations.keys()].join(", ")}.`);
  return station;
}

const CITY = /** @type {const} */ ({ type: "string", description: "City name" });

/** A binary resource. */
const report = Buffer.from("%PDF-1.4\n% Sales of umbrellas, this month: 17\n%%EOF\n");

/**
 * @typedef {object} WeatherOptions
 * @property {string} [name]
 * @property {string} [description] the description of the tool
 * @property {{ type: "string", description?: string }} [location] the schema of its argument
 * @property {(location: string) => void} [onCall] called for each call of the tool
 */

/**
 * The server with one tool, one resource and one prompt.
 * @param {WeatherOptions} [options]
 */
export function createWeather(options = {}) {
  const { name = "weather", description = "Get current weather for a location", location = CITY, onCall } = options;
  return createServer({ name, version: "1.0.0" })
    .tool(
      "get_weather",
      { description, input: { type: "object", properties: { location }, required: ["location"] } },
      ({ location }) => {
        const { high, sky } = stationAt(location);
        onCall?.(location);
        return `The weather in ${location} is ${high}°F and ${sky}.`;
      },
    )
    .resource(
      "file:///home/user/documents/report.pdf",
      { name: "Monthly Report", description: "Monthly sales report", mimeType: "application/pdf" },
      () => report,
    )
    .prompt(
      "code_review",
      {
        description: "Review code for best practices",
        arguments: { language: { description: "Programming language", required: true } },
      },
      ({ language }) => {
        const proper = language.charAt(0).toUpperCase() + language.slice(1);
        const text = `Please review this ${proper} code for best practices and suggest improvements.`;
        return {
          description: `Review ${proper} code for best practices`,
          messages: [{ role: "user", content: { type: "text", text } }],
        };
      },
    );
}

/** @type {{ location: string, sky: string }[]} */
const sightings = [];

export const server = createWeather()
  .tool(
    "forecast",
    {
      description: "Forecast the coming days, one after the other",
      input: {
        type: "object",
        properties: { location: CITY, days: { type: "integer", minimum: 1, maximum: 7 } },
        required: ["location", "days"],
      },
      output: {
        type: "object",
        properties: { highs: { type: "array", items: { type: "number" } } },
        required: ["highs"],
      },
      annotations: { readOnlyHint: true },
    },
    ({ location, days }, context) => {
      const { high } = stationAt(location);
      const highs = [];
      for (let day = 1; day <= days; day++) {
        highs.push(high + (day % 3) - 1);
        context.progress(day, days, `day ${day} of ${days}`);
      }
      return { highs };
    },
  )
  .tool(
    "report_sighting",
    {
      description: "Report the sky over a city; asks the user what it looks like",
      input: { type: "object", properties: { location: CITY }, required: ["location"] },
    },
    async ({ location }, context) => {
      stationAt(location);
      const answer = await context.ask.elicit({
        mode: "form",
        message: `What does the sky over ${location} look like?`,
        requestedSchema: {
          type: "object",
          properties: { sky: { type: "string", enum: ["sunny", "cloudy", "clear"] } },
          required: ["sky"],
        },
      });
      if (answer.action !== "accept") return `Nothing was reported for ${location}.`;
      const sky = answer.content?.sky;
      sightings.push({ location, sky });
      server.resourceUpdated("file:///project/data.json");
      return `Thank you. ${location} is ${sky}.`;
    },
  )
  .resource(
    "file:///project/data.json",
    { name: "Sightings", description: "What users have reported", mimeType: "application/json" },
    () => sightings,
  );
