// The laws of the deltas, over messages made from the official schema of each revision: what goes up and comes
// down again is what it was; what uses only the words of the older revision comes back up as it was. Each is held
// on the single step and, the first, on the whole way to the newest. Error codes changed their meaning on the way,
// so for errors each exception to the second law is written out here, not taken from what the code does.

import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Case } from "../../../test/support/generate.ts";
import { messagesOf, valuesOf } from "../../../test/support/generate.ts";
import { itWithSpec } from "../../../test/support/schema.ts";
import { bodyOf, freeze, GONE, same, stepOf, URI, walk } from "../../../test/support/walk.ts";
import { isObject } from "../../core/objects.ts";
import type { Delta, Json, Revision } from "../revision.ts";
import { ELICITATION_ID } from "../visits.ts";
import { DELTAS, NEWEST, REVISIONS } from "./index.ts";

const RUNS = 20_000;
const MINUTE = 60_000;
const OLDER = REVISIONS.slice(0, -1);

/** Going up, an error gains its kind and nothing else of it is lost. */
function sameError(actual: Json, expected: Json): void {
  same({ code: actual.code, message: actual.message }, { code: expected.code, message: expected.message });
  const { data } = expected;
  if (data === undefined || isDeepStrictEqual(actual.data, data)) return;
  const found = actual.data as Json;
  if (typeof data !== "object" || Array.isArray(data)) return same(found.details, data);
  for (const [key, value] of Object.entries(data as Json)) same(found[key], value);
}

/** A cancellation of nothing, which one revision allows and no other can say. */
function isNameless({ kind, method }: Case, body: Json | undefined): boolean {
  return kind === "notification" && method === "notifications/cancelled" && body?.requestId === undefined;
}

function upAndDown(revision: Revision, one: Case): void {
  const body = bodyOf(one);
  const up = walk(revision.lift, one, body);
  if (up === GONE) return expect(isNameless(one, body) || !NEWEST.endNotifications.has(one.method)).toBe(true);
  const down = walk(revision.lower, one, up);
  if (one.kind === "error") return sameError(down as Json, body as Json);
  same(down, body);
}

const CACHEABLE = ["tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read"];

/** What the successor demands of a message that otherwise uses only what the older revision has. */
function demanded(delta: Delta, one: Case): Json {
  if (delta.name === "2025-06-18" && one.kind === "request" && one.method === "elicitation/create")
    return { mode: "form" };
  if (delta.name !== "2025-11-25" || one.kind !== "result" || NEWEST.asks.has(one.method)) return {};
  return { resultType: "complete", ...(CACHEABLE.includes(one.method) && { ttlMs: 0, cacheScope: "private" }) };
}

/** The message in the words of the successor, where it gave a field another name. */
function inNewWords(delta: Delta, { kind, method }: Case, body: Json | undefined): Json | undefined {
  if (delta.name !== "2025-11-25" || body === undefined) return body;
  if (kind === "request" && method === "elicitation/create" && body.mode === "url") {
    const { elicitationId, ...rest } = body;
    return { ...rest, [ELICITATION_ID]: elicitationId };
  }
  if (kind !== "result" || method !== "tasks/get") return body;
  const { ttl, pollInterval, ...rest } = body;
  return { ...rest, ttlMs: ttl, ...(pollInterval !== undefined && { pollIntervalMs: pollInterval }) };
}

/** Codes that only the newest has, what each says, and the code that says it in a session. */
const NEWEST_CODES: ReadonlyMap<unknown, { readonly kind: string; readonly code: number }> = new Map([
  [-32020, { kind: "header_mismatch", code: -32600 }],
  [-32021, { kind: "missing_capability", code: -32603 }],
  [-32022, { kind: "unsupported_revision", code: -32602 }],
]);

/** Errors that mean something to one side of a step, which plain chance would hardly make; all about a resource. */
const tellingErrors: fc.Arbitrary<Case> = fc
  .tuple(
    fc.constantFrom<Json>(
      { code: -32602, data: { kind: "resource_not_found", uri: URI } },
      { code: -32602, data: { uri: URI } },
      { code: -32002 },
      { code: -32002, data: "gone" },
      { code: -32002, data: { uri: URI } },
      { code: -32042, data: { elicitations: [] } },
      { code: -32042, data: "not an address" },
      { code: -32603, data: { kind: "url_elicitation_required", elicitations: [] } },
      { code: -32603, data: { kind: "internal_error", upstream: { code: -32050, message: "" } } },
      { code: -32603, data: { kind: "timeout", upstream: { code: -32050, message: "" } } },
      { code: -32020 },
      { code: -32021, data: { requiredCapabilities: { roots: {} } } },
      { code: -32022, data: ["no object"] },
      { code: -32050, data: { any: 1 } },
    ),
    fc.constantFrom({}, { mine: [1] }),
  )
  .map(([error, more]) => {
    const { code, data } = error as { code: number; data?: Json };
    const whole = isObject(data) ? { data: { ...data, ...more } } : data === undefined ? {} : { data };
    const message = { jsonrpc: "2.0", id: 1, error: { code, message: "", ...whole } } as const;
    return { kind: "error", method: "resources/read", message };
  });

/** What comes back of the successor's error: the same, but for what one of the two revisions says otherwise. */
function errorBack(delta: Delta, { method }: Case, x: Json): Json {
  const { code, data } = x;
  const fields = isObject(data) ? data : data === undefined ? {} : { details: data };
  const hasAddresses = code === -32042 && Array.isArray(fields.elicitations);
  // The first that had addresses to visit gave them a code, which means nothing to the one before.
  if (delta.name === "2025-06-18") return hasAddresses ? { ...x, code: -32603 } : x;
  if (delta.name !== "2025-11-25") return x;
  // No session has the code; the kind in the data goes on saying what happened.
  const newer = NEWEST_CODES.get(code);
  if (newer) return { ...x, code: newer.code, data: { kind: newer.kind, ...fields } };
  // An error of the session that the newest says with another code: it is read as what it means there.
  if (hasAddresses) return { ...x, code: -32603, data: { kind: "url_elicitation_required", ...fields } };
  if (code === -32601 && method === "tools/call") {
    return { code: -32602, message: x.message, data: { kind: "tool_not_found", upstream: x } };
  }
  if (code === -32002 && method === "resources/read") {
    return { ...x, code: -32602, data: { kind: "resource_not_found", uri: URI, ...fields } };
  }
  // Codes that are any end's own in a session, and the newest's own in the newest, must not be taken for the latter.
  if (code === -32002 || (Number(code) <= -32023 && Number(code) >= -32099)) {
    return { code: -32603, message: x.message, data: { kind: "internal_error", upstream: x } };
  }
  // Known by its address alone, a missing resource gains the word for it.
  if (code === -32602 && method === "resources/read" && fields.uri === URI) {
    return { ...x, data: { kind: "resource_not_found", ...fields } };
  }
  return x;
}

describe("the laws of the deltas", () => {
  for (const [index, delta] of DELTAS.entries()) {
    const revision = REVISIONS[index] as Revision;
    const step = stepOf(index);

    itWithSpec(
      `down(up(y)) = y for every message of ${delta.name}, on the step and on the whole way`,
      () => {
        fc.assert(
          fc.property(messagesOf(delta.name, false), (one) => {
            upAndDown(step, one);
            upAndDown(revision, one);
          }),
          { numRuns: RUNS },
        );
      },
      MINUTE,
    );

    itWithSpec(
      `up(down(x)) = x for every x that uses only what ${delta.name} has`,
      () => {
        fc.assert(
          fc.property(fc.oneof({ weight: 9, arbitrary: messagesOf(delta.name, false) }, tellingErrors), (one) => {
            const body = bodyOf(one);
            if (one.kind === "error") {
              const back = walk(step.lift, one, walk(step.lower, one, body) as Json);
              return same(back, errorBack(delta, one, body as Json));
            }
            if (isNameless(one, body)) return;
            const extra = demanded(delta, one);
            const said = inNewWords(delta, one, body);
            const x = Object.keys(extra).length === 0 ? said : { ...said, ...extra };
            const down = walk(step.lower, one, x);
            same(walk(step.lift, one, down as Json | undefined), goesUp(step, one) ? x : GONE);
          }),
          { numRuns: RUNS },
        );
      },
      MINUTE,
    );
  }

  function goesUp(step: Revision, { kind, method }: Case): boolean {
    return kind !== "notification" || step.lift.notification({ method, params: { requestId: 1 } }) !== undefined;
  }
});

/** An end of ours that can make calls into tasks can list and cancel them too, whoever stands behind it. */
const ALL_TASKS: Json = { list: {}, cancel: {}, requests: { tools: { call: {} } } };

describe("capabilities and names", () => {
  for (const revision of OLDER) {
    itWithSpec(`of ${revision.name} come back from the newest as they were, but for what it has no word for`, () => {
      const { lift, lower, name } = revision;
      const hasTasks = revision.requests.has("tasks/result");
      const all = fc.tuple(
        valuesOf(name, "ClientCapabilities", false),
        valuesOf(name, "ServerCapabilities", false),
        valuesOf(name, "Implementation", false),
      );
      fc.assert(
        fc.property(all, ([client, server, implementation]) => {
          const { tasks: _, roots, ...restOfClient } = freeze(client) as { tasks?: unknown; roots?: Json };
          const { listChanged, ...restOfRoots } = roots ?? {};
          const keptRoots = listChanged === true ? { ...restOfRoots, listChanged } : restOfRoots;
          const keptClient = roots === undefined ? restOfClient : { ...restOfClient, roots: keptRoots };
          same(lower.clientCapabilities(lift.clientCapabilities(client)), keptClient);
          const { tasks, ...keptServer } = freeze(server) as { tasks?: { requests?: { tools?: { call?: Json } } } };
          const offered = hasTasks && tasks?.requests?.tools?.call !== undefined;
          const back = offered ? { ...keptServer, tasks: ALL_TASKS } : keptServer;
          same(lower.serverCapabilities(lift.serverCapabilities(server)), back);
          expect(lower.implementation(lift.implementation(freeze(implementation)))).toBe(implementation);
        }),
        { numRuns: 1000 },
      );
    });
  }
});

it("has a delta for every revision but the newest", () => {
  expect(DELTAS.map((delta) => delta.name)).toEqual(OLDER.map((revision) => revision.name));
});
