// `type` (and `transport`, as some clients call it): which wire an end speaks on. Where there is a command or an address
// that is plain already, and the dialects of HTTP are found out; so it is only held against what stands beside it.

import { oneOf, type Reader } from "../readers.ts";

const WIRES = ["stdio", "http", "streamable-http", "streamableHttp", "sse"] as const;
export type Wire = (typeof WIRES)[number];

const known: Reader<Wire> = oneOf(WIRES);

export function wireOf(place: "stdio" | "http"): Reader<Wire> {
  return (spot) => {
    const wire = known(spot);
    if (wire === undefined || (wire === "stdio") === (place === "stdio")) return wire;
    const [has, wants] = place === "stdio" ? ["a command", "a url"] : ["a url", "a command"];
    return spot.error(` does not go with ${has}`, `leave it out, or say by ${wants} how the end is reached`);
  };
}
