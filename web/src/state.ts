// What the whole page knows of the gateway, kept up to date by the feed. Rows of Traffic are not here: there are too many
// to be signals (traffic/rows.ts).

import { computed, signal } from "@preact/signals";
import type { ConsoleInfo, LiveSession, Overview, Question } from "../../src/console/types.ts";
import { get } from "./api.ts";
import { follow } from "./feed.ts";

export const info = signal<ConsoleInfo | undefined>(undefined);
export const overview = signal<Overview | undefined>(undefined);
/** All questions that wait. */
export const questions = signal<readonly Question[]>([]);
export const live = signal<readonly LiveSession[]>([]);
/** Changes whenever the catalogue may have changed: read it again then. */
export const catalogueVersion = signal(0);
/** The time, in steps of a second, for what says how long ago something was. */
export const now = signal(Date.now());
/** What was said last, for the live region. */
export const said = signal<{ readonly text: string; readonly isError: boolean } | undefined>(undefined);

const COMMAND =
  /(?<![\w./-])catenary(?= (?:up|serve|call|prompt|read|tools|import|add|install|console|doctor|login|check|disable|enable|watch|status)\b)/g;

/** Our own text with commands as the person starts them, such as `npx catenary call`. */
export function typed(text: string): string {
  const { command } = info.value ?? {};
  return command === undefined ? text : text.replace(COMMAND, () => command);
}

/** A command line as the person starts it; its arguments stay as they are. */
export function typedLine(line: string): string {
  return line.replace(/^catenary(?= )/, () => info.value?.command ?? "catenary");
}

/** Where the token is that `catenary` of another user or machine needs, or curl. Undefined if callers need none. */
export function tokenAdvice(ofCurl = false): string | undefined {
  if (info.value?.hasToken !== true) return undefined;
  const who = ofCurl ? "Set" : "As another user, or on another machine, set";
  return `${who} CATENARY_TOKEN to the token of the gateway first: it was printed when the gateway started, or is in its config.`;
}

let hushTimer: ReturnType<typeof setTimeout> | undefined;

/** Says a short sentence at the foot of the page, and to screen readers. */
export function say(text: string, isError = false): void {
  said.value = { text, isError };
  clearTimeout(hushTimer);
  hushTimer = setTimeout(() => (said.value = undefined), isError ? 8000 : 4000);
}

/** How many colours there are, `--c0` and those that follow it in base.css. */
const COLORS = 12;

/** The servers in the order of their names, so that each keeps its colour, whatever the order in the config. */
const serverOrder = computed(() => {
  const names = (overview.value?.servers ?? []).map(({ name }) => name);
  return new Map(names.toSorted().map((name, index) => [name, index]));
});

/** The class with the colour of a server: `c0` to `c11`. */
export function colorOf(server: string | undefined): string {
  const index = server === undefined ? undefined : serverOrder.value.get(server);
  return index === undefined ? "c-none" : `c${index % COLORS}`;
}

/** Keeps the signals up to date. */
export function followState(): () => void {
  const read = (path: string, into: { value: unknown }): void => {
    get<unknown>(path).then(
      (value) => (into.value = value),
      () => undefined, // The feed says that the connection is lost.
    );
  };
  const stops = [
    follow(
      "info",
      (value) => (info.value = value),
      () => read("info", info),
    ),
    follow(
      "overview",
      (value) => (overview.value = value),
      () => read("overview", overview),
    ),
    follow(
      "questions",
      (value) => (questions.value = value),
      () => read("questions", questions),
    ),
    follow("live", (value) => (live.value = value)),
    follow("catalogue", ({ version }) => (catalogueVersion.value = version)),
  ];
  const clock = setInterval(() => (now.value = Date.now()), 1000);
  return () => {
    clearInterval(clock);
    for (const stop of stops) stop();
  };
}
