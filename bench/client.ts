// CPU time of a client per call over HTTP, compared with bare node:http. All clients call the same server, one call after
// another.

import { MeasuredServer } from "./measured-server.ts";
import { measureRows, type Measurement, type Start } from "./measurement.ts";

/** Few calls, since each waits for the server. */
const slice = 250;

export const measureClient: Measurement = async (settings) => {
  const target = await MeasuredServer.start("catenary-http.js");
  const start =
    (kind: string): Start =>
    async () => {
      const server = await MeasuredServer.start("http-caller.js", [kind, target.url]);
      return { server, makeCalls: async (calls) => void (await server.ask({ calls })) };
    };
  const measure = measureRows([
    {
      table: "client",
      name: "Client over HTTP, session style",
      baseline: start("bare"),
      ours: start("session"),
      beside: (peers) => (peers.length > 0 ? { "SDK 2.x": start("sdk") } : {}),
      slice,
      maxCpu: 1.3,
    },
    {
      table: "client",
      name: "Client over HTTP, stateless",
      baseline: start("bare"),
      ours: start("stateless"),
      slice,
      maxCpu: 1.3,
    },
  ]);
  try {
    return await measure(settings);
  } finally {
    await target.stop();
  }
};
