// Validates messages with the official JSON schema of their revision. The schemas are not part of the repository. Without
// them in ../shared/spec, tests that need them are skipped with a warning.
//
// The schemas allow unknown fields. `closed` rejects them, except in free-form objects (`_meta`, JSON schemas).

import { existsSync, readFileSync } from "node:fs";
import { Ajv } from "ajv";
import type { AnySchemaObject, ValidateFunction } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import * as formats from "ajv-formats";
import { it } from "vitest";
import { encode } from "../../../src/jsonrpc/codec.ts";
import type { Message } from "../../../src/jsonrpc/message.ts";
import { REVISIONS } from "../../../src/protocol/revisions/index.ts";

const folder = new URL("../../../../shared/spec/", import.meta.url);
const fileOf = (revision: string): URL => new URL(`${revision}.schema.json`, folder);

const specFound: boolean = REVISIONS.every((revision) => existsSync(fileOf(revision.name)));

const skipped = new Set<string>();

/** Whether the official schemas are there. If not, prints once what is skipped. */
export function hasSpec(name: string): boolean {
  if (!specFound && !skipped.has(name)) {
    skipped.add(name);
    console.warn(`Skipped, because the official schemas are not in ../shared/spec: ${name}`);
  }
  return specFound;
}

/** A test that needs the official schemas. */
export function itWithSpec(name: string, test: () => void | Promise<void>): void {
  it.skipIf(!hasSpec(name))(name, test);
}

export type Side = "client" | "server";
export type Kind = "request" | "notification" | "result" | "error";

export interface Definition {
  readonly $ref?: string;
  readonly anyOf?: readonly Definition[];
  readonly allOf?: readonly Definition[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly items?: Definition;
  readonly properties?: Readonly<Record<string, Definition>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Definition;
}

export interface Spec {
  readonly definitions: Readonly<Record<string, Definition>>;
  /** Names of definitions by method. Requests to the client are messages, or input requests inside a result. */
  readonly requests: ReadonlyMap<string, string>;
  readonly clientRequests: ReadonlyMap<string, string>;
  readonly clientNotifications: ReadonlyMap<string, string>;
  readonly serverNotifications: ReadonlyMap<string, string>;
  /** Whether requests to the client are messages. */
  readonly sendsClientRequests: boolean;
  validator(definition: string, closed: boolean): ValidateFunction;
}

const specs = new Map<string, Spec>();

export function specOf(revision: string): Spec {
  let spec = specs.get(revision);
  if (!spec) specs.set(revision, (spec = load(revision)));
  return spec;
}

/** The problems of a message; empty if it is valid. With `from`, that side must be allowed to send it. */
export function validateMessage(
  revision: string,
  kind: Kind,
  method: string,
  message: Message,
  options: { readonly closed?: boolean; readonly from?: Side } = {},
): string[] {
  const spec = specOf(revision);
  const { from } = options;
  const closed = options.closed === true;
  // As it is sent: an id may be kept as its source text.
  const sent: unknown = JSON.parse(encode(message));
  const check = (definition: string, value: unknown): string[] => problems(spec.validator(definition, closed), value);
  if (kind === "error") return check(errorDefinition(spec), sent);
  if (kind === "notification") {
    const name =
      (from === "server" ? undefined : spec.clientNotifications.get(method)) ??
      (from === "client" ? undefined : spec.serverNotifications.get(method));
    if (name === undefined) return [`${revision} has no notification ${method}${ofSide(from)}`];
    return [...check("JSONRPCNotification", sent), ...check(name, sent)];
  }
  const name =
    (from === "server" ? undefined : spec.requests.get(method)) ??
    (from === "client" || !spec.sendsClientRequests ? undefined : spec.clientRequests.get(method));
  if (name === undefined) return [`${revision} has no request ${method}${ofSide(from)}`];
  if (kind === "request") return [...check("JSONRPCRequest", sent), ...check(name, sent)];
  const { result } = sent as { result?: unknown };
  return [...check(resultEnvelope(spec), sent), ...validateResult(revision, method, result, options)];
}

/** Validates a result alone, also an input response, which is not a message. */
export function validateResult(
  revision: string,
  method: string,
  result: unknown,
  options: { readonly closed?: boolean } = {},
): string[] {
  const spec = specOf(revision);
  const name = resultDefinition(spec, method, result);
  if (name === undefined) return [`${revision} has no request ${method}`];
  const found = problems(spec.validator(name, options.closed === true), result);
  if (name !== "EmptyResult") return found;
  const extra = Object.keys(result as object).filter((key) => key !== "_meta" && key !== "resultType");
  return [...found, ...extra.map((key) => `/${key} is not allowed in an empty result`)];
}

/** Validates params alone, for a request that is not a message. */
export function validateParams(revision: string, method: string, params: unknown, closed = false): string[] {
  const spec = specOf(revision);
  const name = spec.requests.get(method) ?? spec.clientRequests.get(method);
  if (name === undefined) return [`${revision} has no request ${method}`];
  return problems(spec.validator(name, closed), { jsonrpc: "2.0", id: 1, method, params });
}

/** The definition of a method's result; `result` shows whether it is an `input_required` one. */
export function resultDefinition(spec: Spec, method: string, result?: unknown): string | undefined {
  const request = spec.requests.get(method) ?? spec.clientRequests.get(method);
  if (request === undefined) return undefined;
  const own = request.replace(/Request$/, "Result");
  const inputRequired = spec.definitions[`${own}Response`]?.properties?.result?.anyOf?.map(refName)[0];
  if (inputRequired !== undefined && (result as { resultType?: unknown } | undefined)?.resultType === "input_required")
    return inputRequired;
  return Object.hasOwn(spec.definitions, own) ? own : "EmptyResult";
}

const ofSide = (from: Side | undefined): string => (from === undefined ? "" : ` of the ${from}`);

const errorDefinition = (spec: Spec): string =>
  Object.hasOwn(spec.definitions, "JSONRPCErrorResponse") ? "JSONRPCErrorResponse" : "JSONRPCError";

const resultEnvelope = (spec: Spec): string =>
  Object.hasOwn(spec.definitions, "JSONRPCResultResponse") ? "JSONRPCResultResponse" : "JSONRPCResponse";

function problems(validate: ValidateFunction, value: unknown): string[] {
  if (validate(value)) return [];
  return (validate.errors ?? []).map(
    (error) => `${error.instancePath} ${error.message} ${JSON.stringify(error.params)}`,
  );
}

function load(revision: string): Spec {
  const open = JSON.parse(readFileSync(fileOf(revision), "utf8")) as AnySchemaObject;
  const key = Object.hasOwn(open, "$defs") ? "$defs" : "definitions";
  const definitions = open[key] as Record<string, Definition>;
  const parts = new Set(Object.values(definitions).flatMap((one) => one.allOf?.map(refName) ?? []));
  const closed = {
    ...open,
    [key]: Object.fromEntries(
      // A part of an allOf does not define the fields of the other parts.
      Object.entries(definitions).map(([name, one]) => [name, parts.has(name) ? one : close(one, name)]),
    ),
  };
  const Validator = String(open.$schema).includes("2020-12") ? Ajv2020 : Ajv;
  const ajv = new Validator({ strict: false });
  formats.default.default(ajv);
  ajv.addSchema(open, "open").addSchema(closed, "closed");
  const members = (union: string): ReadonlyMap<string, string> => membersOf(definitions, union);
  return {
    definitions,
    requests: members("ClientRequest"),
    clientRequests: members(Object.hasOwn(definitions, "ServerRequest") ? "ServerRequest" : "InputRequest"),
    clientNotifications: members("ClientNotification"),
    serverNotifications: members("ServerNotification"),
    sendsClientRequests: Object.hasOwn(definitions, "ServerRequest"),
    validator: (definition, isClosed) => {
      const validate = ajv.getSchema(`${isClosed ? "closed" : "open"}#/${key}/${definition}`);
      if (!validate) throw new Error(`${revision} has no definition ${definition}`);
      return validate as ValidateFunction;
    },
  };
}

/** The members of a union, by method. */
function membersOf(definitions: Readonly<Record<string, Definition>>, union: string): ReadonlyMap<string, string> {
  const names = definitions[union]?.anyOf?.map((member) => refName(member)) ?? [union];
  return new Map(names.map((name) => [String(definitions[name]?.properties?.method?.const), name]));
}

export function refName(definition: Definition): string {
  return definition.$ref?.split("/").at(-1) ?? "";
}

/** Free-form objects. The envelope of a message is checked by its own definition. */
const FREE = /MetaObject$|^JSONRPC|^(Request|Notification|Result|PaginatedRequest|PaginatedResult)$/;
const FREE_FIELDS = new Set(["_meta", "inputSchema", "outputSchema"]);

function close(definition: Definition, name: string): Definition {
  if (FREE.test(name) || definition.allOf) return definition;
  // In older schemas, the definition of a method lacks the fields of the envelope.
  return closeObject(definition, definition.properties?.method !== undefined);
}

function closeObject(definition: Definition, isMessage: boolean): Definition {
  const { properties, additionalProperties, items, anyOf } = definition;
  return {
    ...definition,
    ...(anyOf && { anyOf: anyOf.map((one) => closeObject(one, false)) }),
    ...(items && { items: closeObject(items, false) }),
    ...(typeof additionalProperties === "object" && { additionalProperties: closeObject(additionalProperties, false) }),
    ...(properties && {
      properties: {
        _meta: {},
        ...Object.fromEntries(
          Object.entries(properties).map(([key, inner]) => [
            key,
            FREE_FIELDS.has(key) ? inner : closeObject(inner, false),
          ]),
        ),
      },
      ...(additionalProperties === undefined && !isMessage && { additionalProperties: false }),
    }),
  };
}
