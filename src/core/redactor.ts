// Replaces secrets in JSON and in messages. Secrets are found by the shape of well-known tokens, by value, or by the name
// of their field. All patterns take time linear in the text. What has no secret is not copied.

import type { Notification, Params, Request, Result } from "./handler.ts";
import { hiderOfShape, REDACTED, type SecretShape, SHAPES, SHORTEST } from "./secret-shapes.ts";
import { hiderOf, isSecretField, MIN_SECRET_LENGTH, type Secret } from "./secrets.ts";
import { isObject } from "./values.ts";

export const DEFAULT_SHAPES: readonly SecretShape[] = ["tokens", "jwts", "private-keys"];

/** Fields of the protocol that must stay as they are: names, addresses, base64, and what is sent back to the server. */
const KEPT: ReadonlySet<string> = new Set(
  `blob cacheScope cursor data icons method mimeType name nextCursor progressToken requestState resultType role taskId
   type uri uriTemplate`.split(/\s+/),
);
/** Fields of the protocol that hold any JSON. */
const FREE: ReadonlySet<string> = new Set(["structuredContent", "arguments", "input"]);
/** Deeper values are replaced as a whole. */
const MAX_DEPTH = 500;

/** Parts of requests in which a caller may have written a secret. */
const REQUEST_FIELDS = ["arguments", "argument", "context", "inputResponses"] as const;

/** What a value is: part of a message, any JSON, or all of it a secret, since its field has the name of one. */
type Content = "protocol" | "json" | "secret";

/** The copy with another value; a copy of the original if there is none yet. */
function replace(original: object, copy: object | undefined, key: PropertyKey, value: unknown): object {
  const target = copy ?? (Array.isArray(original) ? original.slice() : { ...original });
  // `defineProperty`, since a key may be `__proto__`.
  return Object.defineProperty(target, key, { value, enumerable: true, writable: true, configurable: true });
}

export class Redactor {
  readonly #texts: readonly ((text: string) => string)[];
  /** A shorter text has no secret. */
  readonly #shortest: number;
  readonly #isSecret: ((key: string, value: unknown) => boolean) | undefined;
  readonly #secretNumber: unknown;

  /** `isSecret`: whether a field is a secret, by its name. `secretNumber`: what replaces it if it is a number. */
  constructor(
    shapes: readonly string[],
    values: readonly (string | Secret)[],
    isSecret: ((key: string, value: unknown) => boolean) | undefined,
    secretNumber: unknown = 0,
  ) {
    const recognized = SHAPES.filter((shape) => shapes.includes(shape));
    const byValue = values.length === 0 ? [] : [hiderOf(values)];
    this.#texts = [...byValue, ...recognized.map(hiderOfShape)];
    const shortest = recognized.map((shape) => SHORTEST[shape]);
    this.#shortest = values.length === 0 ? Math.min(...shortest) : MIN_SECRET_LENGTH;
    this.#isSecret = isSecret;
    this.#secretNumber = secretNumber;
  }

  /** Arguments of tools, prompts and completions, and answers to questions. */
  request(request: Request): Request {
    let { params } = request;
    for (const field of REQUEST_FIELDS) {
      const value = params[field];
      if (value === undefined) continue;
      const changed = this.json(value);
      if (changed !== value) params = { ...params, [field]: changed };
    }
    return params === request.params ? request : { ...request, params };
  }

  notification(notification: Notification): Notification {
    const { params } = notification;
    if (params === undefined) return notification;
    const changed = this.protocol(params);
    return changed === params ? notification : { ...notification, params: changed };
  }

  /** A result, or params: fields that the protocol needs stay as they are. */
  protocol<T extends Result | Params>(value: T): T {
    return this.#without(value, "protocol", 0) as T;
  }

  /** Any JSON. Fields with the name of a secret are replaced. */
  json(value: unknown): unknown {
    return this.#without(value, "json", 0);
  }

  #without(value: unknown, content: Content, depth: number): unknown {
    if (typeof value === "string") return content === "secret" && value !== "" ? REDACTED : this.text(value);
    if (typeof value === "number") return content === "secret" ? this.#secretNumber : value;
    if (typeof value !== "object" || value === null) return value;
    if (depth > MAX_DEPTH) return REDACTED;
    let copy: object | undefined;
    if (Array.isArray(value)) {
      for (let at = 0; at < value.length; at += 1) {
        const item: unknown = value[at];
        const changed = this.#without(item, content, depth + 1);
        if (changed !== item) copy = replace(value, copy, at, changed);
      }
      return copy ?? value;
    }
    const isMedia = content === "protocol" && Object.hasOwn(value, "mimeType");
    for (const key of Object.keys(value)) {
      const field = (value as Params)[key];
      const inner = this.#contentOf(key, field, content, isMedia);
      if (inner === undefined) continue;
      const changed = this.#without(field, inner, depth + 1);
      if (changed !== field) copy = replace(value, copy, key, changed);
    }
    return content === "protocol" ? (copy ?? value) : this.#withoutSecretKeys(copy ?? value);
  }

  #contentOf(key: string, field: unknown, content: Content, isMedia: boolean): Content | undefined {
    if (content !== "protocol") return this.#isSecret?.(key, field) === true ? "secret" : content;
    // The data of an image is base64; that of a log message or of the error of a task is any JSON.
    if (FREE.has(key) || (key === "data" && !isMedia)) return "json";
    return KEPT.has(key) && !isObject(field) ? undefined : "protocol";
  }

  /** A key may be a secret itself, as in an object of users by token. */
  #withoutSecretKeys(fields: object): object {
    const isHarmless = (key: string): boolean => key.length < MIN_SECRET_LENGTH || this.text(key) === key;
    if (Object.keys(fields).every(isHarmless)) return fields;
    return Object.fromEntries(Object.entries(fields).map(([key, field]: [string, unknown]) => [this.text(key), field]));
  }

  /** A text; if it is JSON, fields with the name of a secret are replaced too. */
  text(text: string): string {
    let redacted = this.#isSecret !== undefined && /^\s*[[{]/.test(text) ? this.#json(text) : text;
    if (redacted.length < this.#shortest) return redacted;
    for (const hide of this.#texts) redacted = hide(redacted);
    return redacted;
  }

  /** Many servers repeat structured content as text, and secrets by the names of fields are in there too. */
  #json(text: string): string {
    try {
      const value: unknown = JSON.parse(text);
      const changed = this.json(value);
      return changed === value ? text : JSON.stringify(changed, undefined, text.includes("\n") ? 2 : undefined);
    } catch {
      return text;
    }
  }
}

let forPeople: Redactor | undefined;

/** Arguments, JSON or text for a log or a question: without what has the name or the shape of a secret. */
export function withoutSecrets<T>(value: T): T {
  forPeople ??= new Redactor(DEFAULT_SHAPES, [], isSecretField, REDACTED);
  return forPeople.json(value) as T;
}
