// CPU time of a client per call over HTTP, compared with bare node:http. All clients call the same server, one call after
// another.

import {
  MeasuredServer,
  measureCalls,
  BASELINE,
  OURS,
  type Figure,
  type Measurement,
  type Start,
} from "./measurement.ts";

export const measureClient: Measurement = async (settings) => {
  const target = await MeasuredServer.start("catenary-http.js");
  const start =
    (kind: string): Start =>
    async () => {
      const server = await MeasuredServer.start("http-caller.js", [kind, target.url]);
      return { server, makeCalls: async (calls) => void (await server.ask({ calls })) };
    };
  const figures: Figure[] = [];
  try {
    for (const style of ["session", "stateless"]) {
      const sdk = settings.peers.length > 0 && style === "session" ? { "SDK 2.x": start("sdk") } : {};
      const subjects = { [BASELINE]: start("bare"), [OURS]: start(style), ...sdk };
      const name = style === "session" ? "session style" : style;
      figures.push({ ...(await measureCalls(`Client over HTTP, ${name}`, subjects, settings)).later, table: "client" });
    }
  } finally {
    await target.stop();
  }
  return figures;
};
