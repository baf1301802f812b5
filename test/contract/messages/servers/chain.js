// The server of seed 004: the weather example under the seed's name. It accepts and returns the placeholder cursors of the
// seed, so that the lists of the seed can be played unchanged.

import { createWeather } from "../../../../examples/weather/server.js";

const weather = createWeather({ name: "mcp-chain-server" });

export const server = async (request, context) => {
  if (request.params.cursor !== "optional-pagination-cursor") return weather(request, context);
  const { cursor: _, ...params } = request.params;
  return { ...(await weather({ ...request, params }, context)), nextCursor: "optional-next-page-cursor" };
};
