// Where the boxes are: nothing overlaps or leaves the picture, whatever its width, and a narrow page gets lists.

import { expect, it } from "vitest";
import type { ChainNode, ChainPicture } from "../../../src/console/types.ts";
import { BOX_HEIGHT, layoutOf, partsOf, type Box } from "./layout.ts";

function node(kind: ChainNode["kind"], name: string, server?: string): ChainNode {
  const id = [kind, server, name].filter((part) => part !== undefined).join(" ");
  return { id, kind, name, calls: 0, errors: 0, last: [], ...(server !== undefined && { server }) };
}

/** `own`: how many middlewares the second server has in front of it. */
function picture(clients: number, steps: number, servers: number, own = 0): ChainPicture {
  const numbered = (count: number, make: (at: number) => ChainNode): ChainNode[] =>
    Array.from({ length: count }, (_, at) => make(at));
  const inFront = numbered(own, (at) => node("middleware", `own-${at}`, "server-1"));
  const [first, ...others] = numbered(servers, (at) => node("upstream", `server-${at}`, `server-${at}`));
  const chain = [...numbered(steps, (at) => node("middleware", `step-${at}`)), node("router", "router")];
  const nodes = [
    ...numbered(clients, (at) => node("client", `client-${at}`)),
    ...chain,
    ...(first === undefined ? [] : [first]),
    ...inFront,
    ...others,
  ];
  const edges = chain.slice(1).map((to, at) => [chain[at]?.id ?? "", to.id] as const);
  return { nodes, edges };
}

function overlap(one: Box, other: Box): boolean {
  const isBeside = one.x + one.width <= other.x || other.x + other.width <= one.x;
  const isBelow = one.y + BOX_HEIGHT <= other.y || other.y + BOX_HEIGHT <= one.y;
  return !isBeside && !isBelow;
}

it.each([
  [1044, picture(3, 4, 6)],
  [1044, picture(8, 12, 3)],
  [1044, picture(1, 2, 40, 2)],
  [700, picture(3, 3, 3)],
  [1600, picture(0, 0, 1)],
  [1044, picture(2, 0, 2, 1)],
])("in %i pixels, boxes stand apart and inside", (width, drawn) => {
  const layout = layoutOf(drawn, width);
  const boxes = [...(layout?.boxes.values() ?? [])];
  expect(boxes).toHaveLength(drawn.nodes.length);
  for (const [at, box] of boxes.entries()) {
    expect(box.x).toBeGreaterThanOrEqual(0);
    expect(box.x + box.width).toBeLessThanOrEqual(width);
    expect(box.y).toBeGreaterThanOrEqual(0);
    expect(box.y + BOX_HEIGHT).toBeLessThanOrEqual(layout?.height ?? 0);
    expect(boxes.slice(at + 1).filter((other) => overlap(box, other))).toEqual([]);
  }
  expect(layout?.edges).toHaveLength(drawn.edges.length);
});

it("the chain is a row if there is room, else a column", () => {
  const rowsOf = (drawn: ChainPicture): number => {
    const boxes = [...(layoutOf(drawn, 1044)?.boxes.values() ?? [])];
    return new Set(boxes.filter(({ node: { kind } }) => kind === "middleware").map(({ y }) => y)).size;
  };
  expect(rowsOf(picture(2, 3, 2))).toBe(1);
  expect(rowsOf(picture(2, 9, 2))).toBe(9);
});

it.each([320, 500])("%i pixels are too few for a picture", (width) => {
  expect(layoutOf(picture(3, 4, 3), width)).toBeUndefined();
});

it("the middleware of a server is in its lane, in front of it", () => {
  const { clients, chain, lanes } = partsOf(picture(2, 3, 2, 2));
  expect([clients.length, chain.length]).toEqual([2, 4]);
  expect(lanes.map((lane) => lane.map(({ name }) => name))).toEqual([["server-0"], ["own-0", "own-1", "server-1"]]);
});
