// Two properties of the deltas, tested with messages generated from the official schemas: a message that is lifted and
// lowered is unchanged, and a message that only uses features of the older revision is unchanged after being lowered and
// lifted. Both are tested for each step, the first also for the whole way to the newest. Error codes changed their
// meaning, so each exception for errors is written out here.

import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Case } from "../../../test/support/spec/generators.ts";
import { messagesOf, valuesOf } from "../../../test/support/spec/generators.ts";
import { itWithSpec } from "../../../test/support/spec/official-schema.ts";
import { bodyOf, GONE, expectSame, singleStep, URI, walk } from "../../../test/support/spec/codec-walk.ts";
import { deepFreeze, isObject } from "../../core/values.ts";
import type { Delta, Json, Revision } from "../revision.ts";
import { DELTAS, NEWEST, REVISIONS } from "./index.ts";
import { runs } from "../../../test/support/thoroughness.ts";

const RUNS = runs(20_000);
const OLDER = REVISIONS.slice(0, -1);

/** A lifted error gains its kind and loses nothing. */
function sameError(actual: Json, expected: Json): void {
  expectSame({ code: actual.code, message: actual.message }, { code: expected.code, message: expected.message });
  const { data } = expected;
  if (data === undefined || isDeepStrictEqual(actual.data, data)) return;
  const found = actual.data as Json;
  if (typeof data !== "object" || Array.isArray(data)) return expectSame(found.details, data);
  for (const [key, value] of Object.entries(data as Json)) expectSame(found[key], value);
}

/** A cancellation without an id, which only one revision allows. */
function isNameless({ kind, method }: Case, body: Json | undefined): boolean {
  return kind === "notification" && method === "notifications/cancelled" && body?.requestId === undefined;
}

function upAndDown(revision: Revision, one: Case): void {
  const body = bodyOf(one);
  const up = walk(revision.lift, one, body);
  if (up === GONE) return expect(isNameless(one, body) || !NEWEST.serverNotifications.has(one.method)).toBe(true);
  const down = walk(revision.lower, one, up);
  if (one.kind === "error") return sameError(down as Json, body as Json);
  expectSame(down, body);
}

const CACHEABLE = ["tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read"];

/** Fields that the successor requires in addition. */
function demanded(delta: Delta, one: Case): Json {
  if (delta.name === "2025-06-18" && one.kind === "request" && one.method === "elicitation/create")
    return { mode: "form" };
  if (delta.name !== "2025-11-25" || one.kind !== "result" || NEWEST.clientRequests.has(one.method)) return {};
  return { resultType: "complete", ...(CACHEABLE.includes(one.method) && { ttlMs: 0, cacheScope: "private" }) };
}

/** The message with fields renamed as in the successor. */
function inNewWords(delta: Delta, { kind, method }: Case, body: Json | undefined): Json | undefined {
  if (delta.name !== "2025-11-25" || body === undefined) return body;
  if (kind !== "result" || method !== "tasks/get") return body;
  const { ttl, pollInterval, ...rest } = body;
  return { ...rest, ttlMs: ttl, ...(pollInterval !== undefined && { pollIntervalMs: pollInterval }) };
}

/** Codes that only the newest has, with their kinds and their codes in a session. */
const NEWEST_CODES: ReadonlyMap<unknown, { readonly kind: string; readonly code: number }> = new Map([
  [-32020, { kind: "header_mismatch", code: -32600 }],
  [-32021, { kind: "missing_capability", code: -32603 }],
  [-32022, { kind: "unsupported_revision", code: -32602 }],
]);

/** Errors with a special meaning on one side, which random generation would hardly produce; all about a resource. */
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

/** The successor's error after being lowered and lifted: the same, except where the revisions differ. */
function errorBack(delta: Delta, { method }: Case, x: Json): Json {
  const { code, data } = x;
  const fields = isObject(data) ? data : data === undefined ? {} : { details: data };
  const hasAddresses = code === -32042 && Array.isArray(fields.elicitations);
  // The code for required URL elicitations means nothing to earlier revisions.
  if (delta.name === "2025-06-18") return hasAddresses ? { ...x, code: -32603 } : x;
  if (delta.name !== "2025-11-25") return x;
  // No session has the code; the kind in the data remains.
  const newer = NEWEST_CODES.get(code);
  if (newer) return { ...x, code: newer.code, data: { kind: newer.kind, ...fields } };
  // A session error with another code in the newest.
  if (hasAddresses) return { ...x, code: -32603, data: { kind: "url_elicitation_required", ...fields } };
  if (code === -32601 && method === "tools/call") {
    return { code: -32602, message: x.message, data: { kind: "tool_not_found", upstream: x } };
  }
  if (code === -32002 && method === "resources/read") {
    return { ...x, code: -32602, data: { kind: "resource_not_found", uri: URI, ...fields } };
  }
  // Codes that a server may use freely in a session, but that are reserved in the newest.
  if (code === -32002 || (Number(code) <= -32023 && Number(code) >= -32099)) {
    return { code: -32603, message: x.message, data: { kind: "internal_error", upstream: x } };
  }
  // A missing resource that is known by its URI alone gains its kind.
  if (code === -32602 && method === "resources/read" && fields.uri === URI) {
    return { ...x, data: { kind: "resource_not_found", ...fields } };
  }
  return x;
}

describe("properties of the deltas", () => {
  for (const [index, delta] of DELTAS.entries()) {
    const revision = REVISIONS[index] as Revision;
    const step = singleStep(index);

    itWithSpec(
      `properties of the deltas down(up(y)) = y for every message of ${delta.name}, on the step and on the whole way`,
      () => {
        fc.assert(
          fc.property(messagesOf(delta.name, false), (one) => {
            upAndDown(step, one);
            upAndDown(revision, one);
          }),
          { numRuns: RUNS },
        );
      },
    );

    itWithSpec(`properties of the deltas up(down(x)) = x for every x that uses only what ${delta.name} has`, () => {
      fc.assert(
        fc.property(fc.oneof({ weight: 9, arbitrary: messagesOf(delta.name, false) }, tellingErrors), (one) => {
          const body = bodyOf(one);
          if (one.kind === "error") {
            const back = walk(step.lift, one, walk(step.lower, one, body) as Json);
            return expectSame(back, errorBack(delta, one, body as Json));
          }
          if (isNameless(one, body)) return;
          const extra = demanded(delta, one);
          const said = inNewWords(delta, one, body);
          const x = Object.keys(extra).length === 0 ? said : { ...said, ...extra };
          const down = walk(step.lower, one, x);
          expectSame(walk(step.lift, one, down as Json | undefined), goesUp(step, one) ? x : GONE);
        }),
        { numRuns: RUNS },
      );
    });
  }

  function goesUp(step: Revision, { kind, method }: Case): boolean {
    return kind !== "notification" || step.lift.notification({ method, params: { requestId: 1 } }) !== undefined;
  }
});

/** A server of ours that supports tasks can always list and cancel them. */
const ALL_TASKS: Json = { list: {}, cancel: {}, requests: { tools: { call: {} } } };

describe("capabilities and names", () => {
  for (const revision of OLDER) {
    itWithSpec(
      `capabilities and names of ${revision.name} come back from the newest as they were, but for what it has no word for`,
      () => {
        const { lift, lower, name } = revision;
        const hasTasks = revision.requests.has("tasks/result");
        const all = fc.tuple(
          valuesOf(name, "ClientCapabilities", false),
          valuesOf(name, "ServerCapabilities", false),
          valuesOf(name, "Implementation", false),
        );
        fc.assert(
          fc.property(all, ([client, server, implementation]) => {
            const { tasks: _, roots, ...restOfClient } = deepFreeze(client) as { tasks?: unknown; roots?: Json };
            const { listChanged: _announced, ...keptRoots } = roots ?? {};
            const keptClient = roots === undefined ? restOfClient : { ...restOfClient, roots: keptRoots };
            expectSame(lower.clientCapabilities(lift.clientCapabilities(client)), keptClient);
            const { tasks, ...keptServer } = deepFreeze(server) as {
              tasks?: { requests?: { tools?: { call?: Json } } };
            };
            const offered = hasTasks && tasks?.requests?.tools?.call !== undefined;
            const back = offered ? { ...keptServer, tasks: ALL_TASKS } : keptServer;
            expectSame(lower.serverCapabilities(lift.serverCapabilities(server)), back);
            expect(lower.implementation(lift.implementation(deepFreeze(implementation)))).toBe(implementation);
          }),
          { numRuns: runs(1000) },
        );
      },
    );
  }
});

it("has a delta for every revision but the newest", () => {
  expect(DELTAS.map((delta) => delta.name)).toEqual(OLDER.map((revision) => revision.name));
});
