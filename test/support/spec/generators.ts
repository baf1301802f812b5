// Generators of valid messages from the official JSON schema of a revision, for property tests. With `known`, messages have
// only the fields of their revision; otherwise also unknown fields, which must never be lost. Some ids and tokens are
// numbers that JavaScript would write differently.

import fc from "fast-check";
import type { Arbitrary } from "fast-check";
import { ExactId } from "../../../src/jsonrpc/message.ts";
import type { Message } from "../../../src/jsonrpc/message.ts";
import { refName, resultDefinition, specOf } from "./official-schema.ts";
import type { Definition, Kind, Spec } from "./official-schema.ts";

export interface Case {
  readonly kind: Kind;
  readonly method: string;
  readonly message: Message;
}

type Json = Readonly<Record<string, unknown>>;

const text: Arbitrary<string> = fc.oneof(
  { weight: 4, arbitrary: fc.string({ maxLength: 8 }) },
  { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 4 }) },
  { weight: 1, arbitrary: fc.constantFrom("__proto__", "constructor", "2.0", "", "\u2028", '"') },
);
const whole: Arbitrary<number> = fc.oneof(fc.nat(1000), fc.maxSafeInteger());
const scalar: Arbitrary<unknown> = fc.oneof(text, whole, fc.boolean());
/** In the newest schema, a JSONObject contains neither null nor fractions. */
const anyJson: Arbitrary<unknown> = fc.oneof(
  { weight: 4, arbitrary: scalar },
  { weight: 1, arbitrary: fc.array(scalar, { maxLength: 2 }) },
  { weight: 1, arbitrary: fc.dictionary(text, scalar, { maxKeys: 2, noNullPrototype: true }) },
);
const anyObject: Arbitrary<Json> = fc.dictionary(text, anyJson, { maxKeys: 2, noNullPrototype: true });

const FORMATS: Readonly<Record<string, Arbitrary<string>>> = {
  uri: fc.nat(99).map((n) => `file:///folder/${n}.txt`),
  "uri-template": fc.constantFrom("notes://{name}", "file:///{+path}", "notes://all"),
  byte: fc.constantFrom("", "AAAA", "aGVsbG8="),
};

/** Numbers that JavaScript writes differently than it reads them. */
const EXACT = [
  new ExactId("1.0", 1),
  new ExactId("9007199254740993", 9007199254740992),
  new ExactId("1e2", 100),
] as const;
const token: Arbitrary<string | number | ExactId> = fc.oneof(
  { weight: 5, arbitrary: fc.nat(9999) },
  { weight: 5, arbitrary: text },
  { weight: 1, arbitrary: fc.constantFrom(...EXACT) },
);

const property: Arbitrary<unknown> = fc.constantFrom<unknown>({ type: "string" }, { type: "integer", minimum: 1 }, {});
const objectSchema = (properties: Arbitrary<unknown>): Arbitrary<Json> =>
  record(
    {
      type: fc.constant("object"),
      $schema: fc.constant("https://json-schema.org/draft/2020-12/schema"),
      properties: fc.dictionary(text, properties, { maxKeys: 2, noNullPrototype: true }),
      required: fc.array(text, { maxLength: 2 }),
    },
    ["type"],
  );

function record(fields: Record<string, Arbitrary<unknown>>, requiredKeys: readonly string[]): Arbitrary<Json> {
  return fc.record(fields, { requiredKeys: [...requiredKeys], noNullPrototype: true });
}

class Generator {
  readonly #spec: Spec;
  readonly #known: boolean;
  readonly #made = new Map<string, Arbitrary<unknown>>();
  /** Only the newest revision allows any JSON Schema; in it, requests to the client are not messages. */
  readonly #free: boolean;

  constructor(spec: Spec, known: boolean) {
    this.#spec = spec;
    this.#known = known;
    this.#free = !spec.sendsClientRequests;
  }

  named(name: string): Arbitrary<unknown> {
    let made = this.#made.get(name);
    if (!made) {
      const definition = this.#spec.definitions[name];
      if (!definition) throw new Error(`Unknown definition ${name}`);
      made = this.#special(name) ?? this.of(definition);
      this.#made.set(name, made);
    }
    return made;
  }

  #special(name: string): Arbitrary<unknown> | undefined {
    if (name === "JSONObject" || name === "MetaObject") return anyObject;
    if (name === "RequestId" || name === "ProgressToken") return token;
    if (name === "EmptyResult" && !this.#free) return record({ _meta: anyObject }, []);
    return undefined;
  }

  of(definition: Definition): Arbitrary<unknown> {
    if (definition.$ref !== undefined) return this.named(refName(definition));
    if (definition.const !== undefined) return fc.constant(definition.const);
    if (definition.enum) return fc.constantFrom(...definition.enum);
    if (definition.anyOf) return fc.oneof(...definition.anyOf.map((one) => this.of(one)));
    if (definition.allOf) {
      return fc
        .tuple(...definition.allOf.map((one) => this.of(one)))
        .map((parts) => Object.assign({}, ...parts) as Json);
    }
    const types = [definition.type].flat();
    return fc.oneof(...types.map((type) => this.#typed(type, definition)));
  }

  #typed(type: string | undefined, definition: Definition): Arbitrary<unknown> {
    const { minimum = 0, maximum = 1000, format, items = {} } = definition;
    switch (type) {
      case "string":
        return (format === undefined ? undefined : FORMATS[format]) ?? text;
      case "integer":
        return fc.integer({ min: minimum, max: maximum });
      case "number":
        return fc.integer({ min: minimum * 4, max: maximum * 4 }).map((n) => n / 4);
      case "boolean":
        return fc.boolean();
      case "null":
        return fc.constant(null);
      case "array":
        return fc.array(this.of(items), { maxLength: 2 });
      case "object":
        return this.#object(definition);
      default:
        return anyJson;
    }
  }

  #object(definition: Definition): Arbitrary<unknown> {
    const { properties, required = [], additionalProperties: more } = definition;
    if (!properties || Object.keys(properties).length === 0) {
      if (this.#known && properties && more === undefined) return fc.constant({});
      if (typeof more !== "object" || Object.keys(more).length === 0) return anyObject;
      return fc.dictionary(text, this.of(more), { maxKeys: 2, noNullPrototype: true });
    }
    const fields = Object.fromEntries(Object.entries(properties).map(([key, inner]) => [key, this.#field(key, inner)]));
    return record(this.#known ? fields : { ...fields, "x-unknown": anyJson }, required);
  }

  #field(key: string, definition: Definition): Arbitrary<unknown> {
    if (key === "inputSchema" || key === "outputSchema") {
      const properties = this.#free ? fc.oneof(property, fc.boolean()) : property;
      const roots = objectSchema(properties);
      const others = fc.constantFrom<unknown>({ type: "array" }, { anyOf: [{ type: "object" }] }, {});
      return this.#free && key === "outputSchema" ? fc.oneof(roots, others) : roots;
    }
    // With another value, it would be a result of another kind.
    if (key === "resultType") return fc.constant("complete");
    return this.of(definition);
  }
}

const generators = new Map<string, Generator>();

function generatorOf(revision: string, known: boolean): Generator {
  const key = `${revision} ${known}`;
  let generator = generators.get(key);
  if (!generator) generators.set(key, (generator = new Generator(specOf(revision), known)));
  return generator;
}

/** Values of a definition in the schema of the revision. */
export function valuesOf(revision: string, definition: string, known = true): Arbitrary<Json> {
  return generatorOf(revision, known).named(definition) as Arbitrary<Json>;
}

/** Any message of the revision, including requests to the client, even if those are not messages in it. */
export function messagesOf(revision: string, known = true): Arbitrary<Case> {
  const spec = specOf(revision);
  const requests = new Map([...spec.requests, ...spec.clientRequests]);
  const notifications = new Map([...spec.clientNotifications, ...spec.serverNotifications]);
  return fc.oneof(
    ...[...requests].map(([method, name]) => requestsOf(revision, method, name, known)),
    ...[...requests.keys()].map((method) => resultsOf(revision, method, known)),
    ...[...notifications].map(([method, name]) => notificationsOf(revision, method, name, known)),
    errorsOf([...spec.requests.keys()]),
  );
}

function requestsOf(revision: string, method: string, name: string, known: boolean): Arbitrary<Case> {
  const body = valuesOf(revision, name, known);
  const meta = fc.option(record({ progressToken: token, "example.org/mark": anyJson }, []), { nil: undefined });
  return fc.tuple(body, token, meta).map(([made, id, _meta]) => {
    const { params } = made as { params?: Json };
    // Older schemas allow `_meta` in params only in the definition of all requests.
    const withMeta = _meta === undefined || params?._meta !== undefined ? params : { ...params, _meta };
    const message = { jsonrpc: "2.0", id, method, ...(withMeta !== undefined && { params: withMeta }) } as const;
    return { kind: "request", method, message };
  });
}

function notificationsOf(revision: string, method: string, name: string, known: boolean): Arbitrary<Case> {
  return valuesOf(revision, name, known).map((made) => {
    const { params } = made as { params?: Json };
    return {
      kind: "notification",
      method,
      message: { jsonrpc: "2.0", method, ...(params !== undefined && { params }) },
    };
  });
}

function resultsOf(revision: string, method: string, known: boolean): Arbitrary<Case> {
  const name = resultDefinition(specOf(revision), method) ?? "EmptyResult";
  return fc
    .tuple(valuesOf(revision, name, known), token)
    .map(([result, id]) => ({ kind: "result", method, message: { jsonrpc: "2.0", id, result } }));
}

function errorsOf(methods: readonly string[]): Arbitrary<Case> {
  const code = fc.oneof(
    fc.constantFrom(-32700, -32600, -32601, -32602, -32603, -32002, -32042, -1),
    fc.integer({ min: -32099, max: -32000 }),
  );
  const error = fc.record(
    { code, message: text, data: anyJson },
    { requiredKeys: ["code", "message"], noNullPrototype: true },
  );
  return fc.tuple(fc.constantFrom(...methods), error, token).map(([method, body, id]) => {
    return { kind: "error", method, message: { jsonrpc: "2.0", id, error: body } };
  });
}
