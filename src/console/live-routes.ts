// The routes of live sessions. GET reads, and runs no code of a caller; POST acts, as the operator (live-actions.ts).

import type { ConsoleHost } from "./host.ts";
import { LiveActions } from "./live-actions.ts";
import type { LiveSessions } from "./live.ts";
import { ApiError, type ApiRequest, type Route } from "./route.ts";
import type { LiveCompletion, LiveInspection } from "./types.ts";

const TURNS = 100;
const PARTS = 50;
const MAX_PARTS = 200;
const MAX_CODE = 100_000;

export function liveRoutes(host: ConsoleHost, sessions: LiveSessions): Route[] {
  const actions = new LiveActions(host, sessions);
  return [
    {
      method: "GET",
      path: "live",
      about:
        "`{servers, sessions, owner}`: the servers of live sessions, all sessions of all owners, those used last first, and whose sessions the operator uses.",
      run: () => sessions.overview(),
    },
    {
      method: "GET",
      path: "live/:id",
      about: "A session: its last evaluations (`turns`, at most 100), definitions, checkpoints and libraries.",
      run: ({ params, query }) => sessions.detail(idIn(params), numberIn(query, "turns", TURNS, TURNS)),
    },
    {
      method: "GET",
      path: "live/:id/complete",
      about: "What can stand at the character `at` of `code`, as the session knows it. Nothing while it is busy.",
      run: ({ params, query }) => complete(sessions, params, query),
    },
    {
      method: "GET",
      path: "live/:id/inspect",
      about: "The parts of the value with this `handle`: `count` of them, from `start` on.",
      run: ({ params, query }) => inspect(sessions, params, query),
    },
    {
      method: "POST",
      path: "evaluate",
      about:
        "Evaluates `code` in `session`, or in the session `name` of `server`, which it starts. With `frame`, in that frame of the open error; with `restart`, takes that restart, with the value of the code `value`. Answers at the end of the evaluation, which goes on if the page leaves.",
      run: ({ body }) => actions.evaluate(body),
    },
    {
      method: "POST",
      path: "interrupt",
      about: "Stops what `session` evaluates.",
      run: ({ body }) => actions.act("interrupt", body),
    },
    {
      method: "POST",
      path: "reset",
      about: "Ends the process of `session`, with all that is defined in it.",
      run: ({ body }) => actions.act("reset", body),
    },
    {
      method: "POST",
      path: "save",
      about: "Saves `session` as the checkpoint `name`, by default its own name.",
      run: ({ body }) => actions.act("save", body),
    },
    {
      method: "POST",
      path: "restore",
      about: "Replaces the state of `session` by `checkpoint`.",
      run: ({ body }) => actions.act("restore", body),
    },
  ];
}

async function complete(
  sessions: LiveSessions,
  params: ApiRequest["params"],
  query: URLSearchParams,
): Promise<LiveCompletion> {
  const { server, ...place } = sessions.find(idIn(params));
  const code = query.get("code") ?? "";
  if (code.length > MAX_CODE) throw new ApiError(413, `"code" has more than ${MAX_CODE} characters`);
  return server.complete(place, code.slice(0, numberIn(query, "at", code.length, code.length)));
}

async function inspect(
  sessions: LiveSessions,
  params: ApiRequest["params"],
  query: URLSearchParams,
): Promise<LiveInspection> {
  const { server, ...place } = sessions.find(idIn(params));
  const handle = numberIn(query, "handle", 0, Number.MAX_SAFE_INTEGER);
  const start = numberIn(query, "start", 0, Number.MAX_SAFE_INTEGER);
  const found = await server.inspect(place, handle, start, numberIn(query, "count", PARTS, MAX_PARTS));
  if (found !== undefined) return found;
  throw new ApiError(409, "The session cannot show values now", "it is busy, or has no process; try again later");
}

function idIn({ id = "" }: ApiRequest["params"]): string {
  return id;
}

/** At most `max`. Throws an ApiError if it is not a number of this kind. */
function numberIn(query: URLSearchParams, name: string, preset: number, max: number): number {
  const given = query.get(name);
  if (given === null) return preset;
  if (!/^\d{1,15}$/.test(given)) throw new ApiError(400, `"${name}" must be a whole number; got ${given.slice(0, 40)}`);
  return Math.min(Number(given), max);
}
