// What a call over HTTP costs a gateway in CPU: an empty chain, and a program behind it that is reached by stdio. Only
// the gateway's own CPU counts, beside a bare node:http echo in the same run; the program's is its own affair.

import { once, type Case } from "./http.ts";
import type { Figure } from "./main.ts";
import { median } from "./median.ts";

const ROUNDS = 3;
/** The project's promise. */
const BOUND = 4;

const CASES: readonly Case[] = (["stateless", "session"] as const).flatMap((style) =>
  [1, 32].map((inFlight): Case => ({ style, tool: "echo", inFlight })),
);

export async function chainCosts(tell: (text: string) => void): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const one of CASES) {
    const name = `echo through an empty chain, ${one.style} style, ${one.inFlight} in flight`;
    tell(`${name}: ${ROUNDS} rounds`);
    const bare: number[] = [];
    const ours: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      bare.push(await once("bare-http.js", one));
      ours.push(await once("catenary-chain.js", one));
    }
    const detail = `${median(ours).toFixed(1)} us a call, bare ${median(bare).toFixed(1)} us`;
    figures.push({ name, value: median(ours) / median(bare), unit: "x bare", bound: BOUND, detail });
  }
  return figures;
}
