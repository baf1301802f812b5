// Node: a box of the picture, a button with what happened at one place. Its accessible name says all of it.

import type { JSX } from "preact";
import type { ChainNode, ServerHealth } from "../../../src/console/types.ts";
import { count, duration, plural, whoText } from "../kit/format.ts";
import { InertText } from "../kit/inert-text.tsx";
import { inertString } from "../kit/inert.ts";
import { Dot, type Tone } from "../kit/marks.tsx";
import { BOX_HEIGHT, type Box } from "./layout.ts";

const KINDS: Readonly<Record<ChainNode["kind"], string>> = {
  client: "Client",
  transform: "Transform",
  middleware: "Middleware",
  router: "Router",
  upstream: "Server",
};

interface Look {
  readonly tone: Tone;
  readonly shape?: "hollow" | "pulse" | "bar";
  readonly words: string;
}

const HEALTH: Readonly<Record<ServerHealth, Look>> = {
  running: { tone: "ok", words: "running" },
  starting: { tone: "ok", shape: "pulse", words: "starting" },
  idle: { tone: "idle", shape: "hollow", words: "idle" },
  "sign-in": { tone: "warn", shape: "hollow", words: "waits for a sign-in" },
  failing: { tone: "bad", shape: "bar", words: "down" },
  disabled: { tone: "idle", shape: "hollow", words: "disabled" },
  incomplete: { tone: "bad", shape: "bar", words: "incomplete" },
};

/** What it is, such as `Middleware redact`. */
export function titleOf({ kind, name, server }: ChainNode): string {
  const of = server === undefined || kind === "upstream" ? "" : ` of ${inertString(server)}`;
  return kind === "router" ? "Router" : `${KINDS[kind]} ${inertString(kind === "client" ? whoText(name) : name)}${of}`;
}

/** What happened there, for a screen reader and for the panel of the node. */
export function factsOf({ kind, calls, errors, p50, changed = 0, note, health }: ChainNode): readonly string[] {
  const state = health === undefined ? undefined : HEALTH[health].words;
  return [
    state,
    plural(calls, "call"),
    kind === "transform" || kind === "middleware" ? `${count(changed)} changed` : undefined,
    note,
    errors > 0
      ? plural(
          errors,
          kind === "client" ? "error" : "error began here",
          kind === "client" ? "errors" : "errors began here",
        )
      : undefined,
    p50 === undefined ? undefined : `median ${duration(p50)}`,
  ].filter((fact) => fact !== undefined);
}

/** The second line of the box: what tells most. */
function lineOf({ kind, calls, changed = 0, note, health }: ChainNode): string {
  if (health !== undefined && health !== "running") return HEALTH[health].words;
  if (kind === "router") return note ?? "";
  if (changed > 0) return `${count(changed)} changed`;
  return plural(calls, "call");
}

export function Node(props: {
  readonly node: ChainNode;
  /** Its place in the picture; absent in a list. */
  readonly box: Box | undefined;
  readonly isChosen: boolean;
  readonly onChoose: () => void;
}): JSX.Element {
  const { node, box, isChosen } = props;
  const { kind, name, errors, p50, health, calls } = node;
  const tone = toneOf(health);
  const isQuiet = calls === 0 && (kind !== "upstream" || health === "idle" || health === "disabled");
  const isInFront = node.server !== undefined && kind !== "upstream";
  const classes = ["chain-node", `is-${kind}`, isInFront ? "is-in-front" : "", tone, isQuiet ? "is-quiet" : ""]
    .filter(Boolean)
    .join(" ");
  const place = box && { left: `${box.x}px`, top: `${box.y}px`, width: `${box.width}px`, height: `${BOX_HEIGHT}px` };
  return (
    <button type="button" class={classes} style={place} aria-pressed={isChosen} onClick={props.onChoose}>
      <span class="unseen">
        {titleOf(node)}: {factsOf(node).join(", ")}
      </span>
      <span class="chain-name" aria-hidden="true">
        {health === undefined ? null : <Dot {...dotOf(health)} />}
        <span class="cut">
          {kind === "router" ? (
            "router"
          ) : (
            <InertText text={inertString(kind === "client" ? whoText(name) : name).slice(0, 60)} />
          )}
        </span>
      </span>
      <span class="chain-line cut" aria-hidden="true">
        {lineOf(node)}
      </span>
      <span class="chain-figures" aria-hidden="true">
        <span>{p50 === undefined ? "" : duration(p50)}</span>
        {errors > 0 ? <span class="bad">{count(errors)} err.</span> : null}
      </span>
    </button>
  );
}

/** The class for a state in which calls do not get through. */
export function toneOf(health: ServerHealth | undefined): "is-bad" | "is-warn" | "" {
  if (health === "failing" || health === "incomplete") return "is-bad";
  return health === "sign-in" ? "is-warn" : "";
}

function dotOf(health: ServerHealth): Pick<Look, "tone" | "shape"> {
  const { words: _, ...look } = HEALTH[health];
  return look;
}
