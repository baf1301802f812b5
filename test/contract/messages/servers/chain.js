// The server of seed 004: the weather example under the seed's name. The seed's cursors are placeholders; here
// they are cursors like any other, so that its lists can be played as they are written.

import { createWeather } from "../../../../examples/weather/server.js";

const weather = createWeather({ name: "mcp-chain-server" });

export const server = async (request, context) => {
  if (request.params.cursor !== "optional-pagination-cursor") return weather(request, context);
  const { cursor: _, ...params } = request.params;
  return { ...(await weather({ ...request, params }, context)), nextCursor: "optional-next-page-cursor" };
};
