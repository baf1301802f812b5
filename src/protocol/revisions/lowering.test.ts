// A lowered message is valid in the older revision and has no field that is unknown there, or it is refused; a lifted
// message is valid in the newest. Messages are generated from the official schemas and checked by them.

import fc from "fast-check";
import { describe, expect } from "vitest";
import type { Case } from "../../../test/support/spec/generators.ts";
import { messagesOf, valuesOf } from "../../../test/support/spec/generators.ts";
import {
  itWithSpec,
  specOf,
  validateMessage,
  validateParams,
  validateResult,
} from "../../../test/support/spec/official-schema.ts";
import { bodyOf, GONE, expectSame, singleStep, walk } from "../../../test/support/spec/codec-walk.ts";
import { deepFreeze } from "../../core/values.ts";
import type { ErrorBody } from "../../jsonrpc/message.ts";
import { McpError } from "../errors.ts";
import { META } from "../model/base.ts";
import type { Json, Revision } from "../revision.ts";
import { NEWEST, REVISIONS } from "./index.ts";
import { runs } from "../../../test/support/thoroughness.ts";

// Checking by schema is slow, so there are fewer runs than in laws.test.ts.
const RUNS = runs(8_000);
const OLDER = REVISIONS.slice(0, -1);

describe("capabilities and names", () => {
  for (const revision of OLDER) {
    itWithSpec(`capabilities and names of the newest are valid in ${revision.name} when lowered`, () => {
      const { lower, name } = revision;
      const check = (definition: string, value: Json): void => {
        const validate = specOf(name).validator(definition, true);
        expectSame([validate(value), validate.errors], [true, null]);
      };
      const all = fc.tuple(
        valuesOf(NEWEST.name, "ClientCapabilities"),
        valuesOf(NEWEST.name, "ServerCapabilities"),
        valuesOf(NEWEST.name, "Implementation"),
      );
      fc.assert(
        fc.property(all, ([client, server, implementation]) => {
          // Extensions are vendors' own. Older revisions do not define the field, but real clients and servers use it.
          const { extensions: ofClient, ...ours } = lower.clientCapabilities(deepFreeze(client));
          const { extensions: ofServer, ...theirs } = lower.serverCapabilities(deepFreeze(server));
          expectSame([ofClient, ofServer], [client["extensions"], server["extensions"]]);
          check("ClientCapabilities", ours);
          check("ServerCapabilities", theirs);
          check("Implementation", lower.implementation(deepFreeze(implementation)));
        }),
        { numRuns: runs(1000) },
      );
    });
  }
});

describe("messages", () => {
  for (const [index, revision] of OLDER.entries()) {
    itWithSpec(`messages of the newest are valid in ${revision.name} when lowered, or refused by name`, () =>
      holdsBelow(revision, NEWEST, RUNS),
    );

    const successor = REVISIONS[index + 1] as Revision;
    // Messages that only one revision has never come from the newest, so the single step is tested too.
    itWithSpec(
      `messages of ${successor.name} are valid in ${revision.name} when lowered by one step, or refused by name`,
      () => holdsBelow(singleStep(index), successor, RUNS / 2),
    );

    itWithSpec(`messages of ${revision.name} are valid in the newest when lifted`, () => {
      fc.assert(
        fc.property(messagesOf(revision.name), (one) => expectSame(problemsAbove(revision, one), [])),
        { numRuns: RUNS / 2 },
      );
    });
  }

  function holdsBelow(revision: Revision, from: Revision, count: number): void {
    let said = 0;
    fc.assert(
      fc.property(messagesOf(from.name), (one) => {
        // Made of capabilities and implementations, which are lowered separately.
        if (one.method === "initialize" && one.kind !== "error") return;
        const outcome = lowered(revision, one);
        if (outcome === undefined) return;
        said++;
        expectSame(problemsBelow(revision, one, outcome), []);
      }),
      { numRuns: count },
    );
    expect(said).toBeGreaterThan(count / 2);
  }

  /** Undefined if the revision cannot express it; a request or result must then be refused with an error. */
  function lowered(revision: Revision, one: Case): Json | undefined {
    try {
      const after = walk(revision.lower, one, bodyOf(one));
      if (after === GONE) {
        const isNameless = one.method === "notifications/cancelled" && bodyOf(one)?.requestId === undefined;
        expect(isNameless || !revision.serverNotifications.has(one.method)).toBe(true);
        return undefined;
      }
      return after ?? {};
    } catch (error) {
      if (!(error instanceof McpError)) throw error;
      const kinds = ["missing_capability", "internal_error", "method_not_found"];
      expect(kinds).toContain(error.kind);
      expect(NEWEST.clientRequests.has(one.method) || !revision.requests.has(one.method)).toBe(true);
      return undefined;
    }
  }

  function problemsBelow(revision: Revision, one: Case, body: Json): string[] {
    const { kind, method } = one;
    const known = revision.requests.has(method) || revision.clientRequests.has(method);
    if ((kind === "result" || kind === "request") && !known) return [];
    const base = { jsonrpc: "2.0", id: 1 } as const;
    const check = (message: Parameters<typeof validateMessage>[3]): string[] =>
      validateMessage(revision.name, kind, method, message, { closed: true });
    if (kind === "request") return check({ ...base, method, params: body });
    if (kind === "result") return check({ ...base, result: body });
    if (kind === "error") return check({ ...base, error: body as unknown as ErrorBody });
    return check({ jsonrpc: "2.0", method, params: body });
  }

  function problemsAbove(revision: Revision, one: Case): string[] {
    const { kind, method } = one;
    const spec = specOf(NEWEST.name);
    const body = walk(revision.lift, one, bodyOf(one));
    const known = spec.requests.has(method) || spec.clientRequests.has(method);
    if (kind === "error" || body === GONE || (kind !== "notification" && !known)) return [];
    if (kind === "notification") {
      return validateMessage(NEWEST.name, kind, method, { jsonrpc: "2.0", method, ...(body && { params: body }) });
    }
    if (kind === "result") return validateResult(NEWEST.name, method, body);
    // A session states once what every stateless request carries; dialogue/ adds it.
    const { progressToken: _, ...meta } = (body?._meta ?? {}) as Json;
    const _meta = { ...meta, [META.revision]: NEWEST.name, [META.clientCapabilities]: {} };
    return validateParams(NEWEST.name, method, spec.clientRequests.has(method) ? body : { ...body, _meta });
  }
});
