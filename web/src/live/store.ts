// What the page Live knows: the servers, the session that is shown, its turns as they happen, and what is inspected. The
// feed tells what happens; what was missed is read again whenever the feed opens.

import { computed, effect, signal } from "@preact/signals";
import type {
  LiveAnswer,
  LiveDetail,
  LiveOverview,
  LiveServerView,
  TranscriptEvent,
  Turn,
} from "../../../src/console/types.ts";
import { get, post, reasonOf, segment } from "../api.ts";
import { follow } from "../feed.ts";
import { go, hrefOf, place } from "../router.ts";
import { live, say } from "../state.ts";

/** How many turns are shown, and how much output of each while it runs. */
const MAX_TURNS = 200;
const MAX_OUTPUT = 20_000;
/** Definitions and checkpoints are read again so long after an evaluation. */
const REFRESH_MS = 600;

export const servers = signal<readonly LiveServerView[] | undefined>(undefined);
export const detail = signal<LiveDetail | undefined>(undefined);
export const turns = signal<readonly Turn[]>([]);
export const problem = signal<string | undefined>(undefined);
/** The code in the textbox. */
export const code = signal("");
/** The frame in which the code is evaluated, of the turn whose error is open. */
export const frame = signal<{ readonly turn: number; readonly number: number } | undefined>(undefined);
/** Whether the end of the transcript is in sight, and shall stay there. */
export const isAtEnd = signal(true);
export interface Inspected {
  readonly session: string;
  /** The process that has the value, by its number. */
  readonly process: number;
  readonly handle: number;
  readonly text: string;
}
export const inspected = signal<Inspected | undefined>(undefined);

/** The place of a session that does not exist yet: `#/live/new?server=lisp&name=main`. */
const NEW = "new";

/** What is chosen: a session by its id, or one to start. Without a choice, the session that was used last. */
export const chosen = computed((): { readonly id: string } | { readonly server: string; readonly name: string } => {
  const [id] = place.value.path;
  const { query } = place.value;
  if (id !== undefined && id !== NEW) return { id };
  const [last] = id === undefined ? live.value.toSorted((one, other) => other.usedAt - one.usedAt) : [];
  if (last !== undefined) return { id: last.id };
  const server = query.get("server") ?? servers.value?.[0]?.name ?? "";
  return { server, name: query.get("name") ?? "main" };
});

/** The id of the session that is chosen: the same value as long as it is the same session. */
const chosenId = computed(() => ("id" in chosen.value ? chosen.value.id : undefined));

/** The session that is shown, as the feed last told. */
export const session = computed(() => {
  const at = chosen.value;
  if (!("id" in at)) return undefined;
  return (
    live.value.find(({ id }) => id === at.id) ?? (detail.value?.session.id === at.id ? detail.value.session : undefined)
  );
});

export const server = computed(() => {
  const name = session.value?.server ?? ("server" in chosen.value ? chosen.value.server : "");
  return servers.value?.find((one) => one.name === name);
});

/** Whether the process with this number is still that of the session that is shown. */
export function isOfProcess(number: number): boolean {
  return session.value?.process === number && session.value.state !== "stopped";
}

export function can(action: string): boolean {
  return server.value?.can.includes(action) === true;
}

/** Keeps what the page shows up to date while it is shown. */
export function followLive(): () => void {
  const stops = [
    follow(
      "transcript",
      (events) => apply(events),
      () => void reload(),
    ),
    chosenId.subscribe(() => {
      if (isShown()) void choose();
    }),
    effect(() => {
      if (inspected.value !== undefined && !isOfProcess(inspected.value.process)) inspected.value = undefined;
    }),
    effect(() => {
      // While something runs, no error is open.
      const isSettled = session.value?.state === "idle" && turns.value.length > 0;
      if (isSettled && frame.value?.turn !== openTurn.value) frame.value = undefined;
    }),
  ];
  return () => {
    for (const stop of stops) stop();
    clearTimeout(refreshTimer);
    detail.value = undefined;
    turns.value = [];
    shownId = undefined;
  };
}

function isShown(): boolean {
  return place.peek().page === "live";
}

async function reload(): Promise<void> {
  try {
    const overview = await get<LiveOverview>("live");
    servers.value = overview.servers;
    live.value = overview.sessions;
  } catch (error) {
    problem.value = reasonOf(error);
  }
  await choose();
}

let shownId: string | undefined;

async function choose(): Promise<void> {
  const id = chosenId.peek();
  // Another session that is used later does not take its place.
  if (id !== undefined && place.peek().path.length === 0) go(hrefOf("live", [id]), { replace: true });
  if (id !== shownId) {
    detail.value = undefined;
    turns.value = [];
    frame.value = undefined;
    inspected.value = undefined;
    isAtEnd.value = true;
  }
  shownId = id;
  problem.value = undefined;
  if (id !== undefined) await refresh(true);
}

/** Reads the session. Without `isWhole`, its turns stay as the feed told them. */
async function refresh(isWhole: boolean): Promise<void> {
  const id = shownId;
  if (id === undefined) return;
  try {
    const found = await get<LiveDetail>(`live/${segment(id)}`);
    if (id !== shownId) return;
    const known = detail.peek()?.session.id === id ? detail.peek()?.definitions : undefined;
    detail.value = found.definitions === undefined && known !== undefined ? { ...found, definitions: known } : found;
    live.value = live.value.map((one) => (one.id === id ? found.session : one));
    if (isWhole) turns.value = found.turns;
  } catch (error) {
    if (id === shownId && isWhole) problem.value = reasonOf(error);
  }
}

let refreshTimer: ReturnType<typeof setTimeout> | undefined;

function refreshSoon(): void {
  clearTimeout(refreshTimer);
  refreshTimer = setTimeout(() => void refresh(false), REFRESH_MS);
}

function apply(events: readonly TranscriptEvent[]): void {
  const own = events.filter((event) => event.session === shownId);
  if (own.length === 0) return;
  const known = new Map(turns.value.map((turn) => [turn.turn, turn]));
  for (const event of own) {
    const { turn } = event;
    const before = known.get(turn);
    if (event.type === "began") {
      const { type: _type, session: _session, ...begun } = event;
      if (before === undefined) known.set(turn, begun);
    } else if (before !== undefined && before.ended === undefined) {
      if (event.type === "output") {
        known.set(turn, { ...before, output: `${before.output ?? ""}${event.text}`.slice(-MAX_OUTPUT) });
      } else {
        const { type: _type, session: _session, turn: _turn, at: _at, ...ended } = event;
        known.set(turn, { ...before, ended });
        refreshSoon();
      }
    }
  }
  turns.value = [...known.values()].slice(-MAX_TURNS);
}

/** The turn whose error is open, so that its restarts can be taken. */
export const openTurn = computed(() => {
  if (session.value?.holdsError !== true) return undefined;
  return turns.value.findLast(({ ended }) => conditionOf(ended?.evaluation)?.open === true)?.turn;
});

export interface Condition {
  readonly type: string;
  readonly message: string;
  readonly restarts: readonly Restart[];
  readonly frames: readonly Frame[];
  readonly open?: boolean | null;
}

export interface Restart {
  readonly name: string | null;
  readonly description: string;
  readonly takesValue?: boolean | null;
}

export interface Frame {
  readonly number: number;
  readonly text: string;
  readonly locals?: readonly { readonly name: string; readonly value: string; readonly handle?: number | null }[];
}

/** The error in an evaluation. The server has checked its shape. */
export function conditionOf(evaluation: { readonly [field: string]: unknown } | undefined): Condition | undefined {
  return evaluation?.["condition"] as Condition | undefined;
}

/** Evaluates code in the session that is shown, or starts it. Resolves when the evaluation has ended, or is refused. */
export async function evaluate(source: string): Promise<void> {
  const at = chosen.peek();
  const inFrame = frame.peek()?.number;
  const to = "id" in at ? { session: at.id } : { server: at.server, name: at.name };
  isAtEnd.value = true;
  const isDone = await act("evaluate", { ...to, code: source, ...(inFrame === undefined ? {} : { frame: inFrame }) });
  if (!isDone && code.peek() === "") code.value = source;
}

/** Takes a restart by its number. */
export async function takeRestart(restart: number, value?: string): Promise<void> {
  if (shownId === undefined) return;
  isAtEnd.value = true;
  await act("evaluate", { session: shownId, restart: String(restart), ...(value === undefined ? {} : { value }) });
}

export async function interrupt(): Promise<void> {
  await act("interrupt", { session: shownId }, true);
}

export async function reset(): Promise<void> {
  await act("reset", { session: shownId }, true);
  refreshSoon();
}

export async function save(name: string): Promise<void> {
  await act("save", { session: shownId, ...(name === "" ? {} : { name }) }, true);
  await refresh(false);
}

export async function restore(checkpoint: string): Promise<void> {
  await act("restore", { session: shownId, checkpoint }, true);
  await refresh(false);
}

/** Does something, and returns whether that was done. What fails is said; what succeeds, if `says`. */
async function act(path: string, body: object, says = false): Promise<boolean> {
  try {
    const { session: id, isError, isRefused = false, text } = await post<LiveAnswer>(path, body);
    const [line = ""] = text.split("\n");
    if (says || isRefused) say(line, isError);
    if (isRefused) return false;
    if (!isShown() || "id" in chosen.peek()) return true;
    // A session that has begun is shown from now on, with what it has done so far.
    go(hrefOf("live", [id]), { replace: true });
    await reload();
    return true;
  } catch (error) {
    say(reasonOf(error), true);
    return false;
  }
}
