// Where the boxes of the picture are: clients at the left, the chain in the middle, servers at the right. The chain is a
// row if there is room for it, else a column. A page that is too narrow for both shows lists, without a picture.

import type { ChainNode, ChainPicture } from "../../../src/console/types.ts";

export interface Box {
  readonly node: ChainNode;
  readonly x: number;
  readonly y: number;
  readonly width: number;
}

export interface Edge {
  readonly from: Box;
  readonly to: Box;
  /** The `d` of an SVG path. */
  readonly path: string;
}

export interface Layout {
  readonly width: number;
  readonly height: number;
  readonly boxes: ReadonlyMap<string, Box>;
  readonly edges: readonly Edge[];
}

/** The nodes of the picture in its three parts. */
export interface Parts {
  readonly clients: readonly ChainNode[];
  /** Transforms, middleware and the router, in the order of a call. */
  readonly chain: readonly ChainNode[];
  /** The servers, each after the middleware in front of it alone. */
  readonly lanes: readonly (readonly ChainNode[])[];
}

export const BOX_HEIGHT = 64;
const GAP_Y = 12;
const CLIENT_WIDTH = 150;
/** Boxes of the chain shrink to the smaller one before they stand in a column. */
const STEP_WIDTH = 116;
const MIN_STEP_WIDTH = 94;
const SERVER_WIDTH = 172;
const STEPS = [STEP_WIDTH, 105, MIN_STEP_WIDTH];
/** Between the parts, where the edges spread, and between boxes of one part. */
const PART_GAP = 44;
const STEP_GAP = 18;
/** In a tall picture the chain is where it is seen first. */
const MAX_CENTER = 250;

export function partsOf({ nodes }: ChainPicture): Parts {
  const lanes = new Map<string, ChainNode[]>();
  for (const node of nodes) {
    const server = node.server ?? (node.kind === "upstream" ? node.name : undefined);
    if (server !== undefined) lanes.set(server, [...(lanes.get(server) ?? []), node]);
  }
  const isOfChain = ({ kind, server }: ChainNode): boolean =>
    server === undefined && kind !== "client" && kind !== "upstream";
  return {
    clients: nodes.filter(({ kind }) => kind === "client"),
    chain: nodes.filter(isOfChain),
    lanes: [...lanes.values()],
  };
}

/** Undefined if the width is too small for a picture. */
export function layoutOf(picture: ChainPicture, width: number): Layout | undefined {
  const parts = partsOf(picture);
  const { clients, chain, lanes } = parts;
  const before = Math.max(0, ...lanes.map((lane) => lane.length - 1));
  const widthOf = (count: number, step: number): number => Math.max(0, count * (step + STEP_GAP) - STEP_GAP);
  const restFor = (step: number): number =>
    width - CLIENT_WIDTH - before * (step + STEP_GAP) - SERVER_WIDTH - 2 * PART_GAP;
  const step = STEPS.find((one) => restFor(one) >= widthOf(chain.length, one));
  const isRow = step !== undefined;
  const stepWidth = step ?? MIN_STEP_WIDTH;
  const rest = restFor(stepWidth);
  const lanesWidth = before * (stepWidth + STEP_GAP) + SERVER_WIDTH;
  if (!isRow && rest < MIN_STEP_WIDTH) return undefined;

  const rows = isRow ? Math.min(1, chain.length) : chain.length;
  const height = heightOf(Math.max(1, clients.length, lanes.length, rows));
  const center = Math.max(Math.min(height / 2, MAX_CENTER), heightOf(rows) / 2);
  const top = (count: number): number => Math.max(0, center - heightOf(count) / 2);
  const chainWidth = isRow ? widthOf(chain.length, stepWidth) : Math.min(rest, 160);
  const chainX = CLIENT_WIDTH + PART_GAP + (rest - chainWidth) / 2;
  const lanesX = width - lanesWidth;

  const boxes = new Map<string, Box>();
  const put = (node: ChainNode, x: number, y: number, boxWidth: number): void =>
    void boxes.set(node.id, { node, x: Math.round(x), y: Math.round(y), width: boxWidth });
  for (const [at, node] of clients.entries())
    put(node, 0, top(clients.length) + at * (BOX_HEIGHT + GAP_Y), CLIENT_WIDTH);
  for (const [at, node] of chain.entries()) {
    const [x, y] = isRow ? [at * (stepWidth + STEP_GAP), 0] : [0, at * (BOX_HEIGHT + GAP_Y)];
    put(node, chainX + x, top(rows) + y, isRow ? stepWidth : chainWidth);
  }
  for (const [at, lane] of lanes.entries()) {
    const y = top(lanes.length) + at * (BOX_HEIGHT + GAP_Y);
    for (const [place, node] of lane.entries()) {
      const isServer = place === lane.length - 1;
      const x = isServer ? width - SERVER_WIDTH : lanesX + (before - lane.length + 1 + place) * (stepWidth + STEP_GAP);
      put(node, x, y, isServer ? SERVER_WIDTH : stepWidth);
    }
  }
  const edges = picture.edges.flatMap(([fromId, toId]) => {
    const [from, to] = [boxes.get(fromId), boxes.get(toId)];
    return from === undefined || to === undefined ? [] : [{ from, to, path: pathOf(from, to) }];
  });
  return { width, height, boxes, edges };
}

function heightOf(count: number): number {
  return count * (BOX_HEIGHT + GAP_Y) - GAP_Y;
}

function pathOf(from: Box, to: Box): string {
  if (from.x === to.x) return `M${from.x + from.width / 2} ${from.y + BOX_HEIGHT}V${to.y}`;
  const [x1, y1] = [from.x + from.width, from.y + BOX_HEIGHT / 2];
  const [x2, y2] = [to.x, to.y + BOX_HEIGHT / 2];
  if (y1 === y2) return `M${x1} ${y1}H${x2}`;
  const middle = (x1 + x2) / 2;
  return `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`;
}
