// Replaces secrets in JSON and in messages. Secrets are found by the shape of well-known tokens, by value, or by the name
// of their field. All patterns take time linear in the text. What has no secret is not copied.

import type { Notification, Params, Request, Result } from "./handler.ts";
import { hiderOf, isSecretField, MIN_SECRET_LENGTH, type Secret } from "./secrets.ts";
import { isObject } from "./values.ts";

/** A kind of secret that `redact()` recognizes by its shape. */
export type SecretShape = "tokens" | "jwts" | "private-keys" | "cards" | "emails";

export const SHAPES: readonly SecretShape[] = ["tokens", "jwts", "private-keys", "cards", "emails"];
export const DEFAULT_SHAPES: readonly SecretShape[] = ["tokens", "jwts", "private-keys"];
export const REDACTED = "[redacted]";

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

/** The copy with another value; a copy of the original if there is none yet. */
function replace(original: object, copy: object | undefined, key: PropertyKey, value: unknown): object {
  const own = copy ?? (Array.isArray(original) ? [...(original as unknown[])] : { ...original });
  // `defineProperty`, since a key may be `__proto__`.
  return Object.defineProperty(own, key, { value, enumerable: true, writable: true, configurable: true });
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
    this.#texts = [...byValue, ...recognized.map(hider)];
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
    return this.#protocol(value, 0) as T;
  }

  #protocol(value: unknown, depth: number): unknown {
    if (typeof value === "string") return this.text(value);
    if (typeof value !== "object" || value === null) return value;
    if (depth > MAX_DEPTH) return REDACTED;
    let copy: object | undefined;
    if (Array.isArray(value)) {
      for (let at = 0; at < value.length; at += 1) {
        const item: unknown = value[at];
        const changed = this.#protocol(item, depth + 1);
        if (changed !== item) copy = replace(value, copy, at, changed);
      }
      return copy ?? value;
    }
    const isMedia = Object.hasOwn(value, "mimeType");
    for (const key of Object.keys(value)) {
      const field = (value as Params)[key];
      // The data of an image is base64; that of a log message or of the error of a task is any JSON.
      const isFree = FREE.has(key) || (key === "data" && !isMedia);
      if (!isFree && KEPT.has(key) && !isObject(field)) continue;
      const changed = isFree ? this.#any(field, depth + 1) : this.#protocol(field, depth + 1);
      if (changed !== field) copy = replace(value, copy, key, changed);
    }
    return copy ?? value;
  }

  /** Any JSON. Fields with the name of a secret are replaced. */
  json(value: unknown): unknown {
    return this.#any(value, 0);
  }

  #any(value: unknown, depth: number, isSecret = false): unknown {
    if (typeof value === "string") return isSecret && value !== "" ? REDACTED : this.text(value);
    if (typeof value === "number") return isSecret ? this.#secretNumber : value;
    if (typeof value !== "object" || value === null) return value;
    if (depth > MAX_DEPTH) return REDACTED;
    let copy: object | undefined;
    if (Array.isArray(value)) {
      for (let at = 0; at < value.length; at += 1) {
        const item: unknown = value[at];
        const changed = this.#any(item, depth + 1, isSecret);
        if (changed !== item) copy = replace(value, copy, at, changed);
      }
      return copy ?? value;
    }
    for (const key of Object.keys(value)) {
      const field = (value as Params)[key];
      const changed = this.#any(field, depth + 1, isSecret || this.#isSecret?.(key, field) === true);
      if (changed !== field) copy = replace(value, copy, key, changed);
    }
    return this.#withoutSecretKeys(copy ?? value);
  }

  /** A key may be a secret itself, as in an object of users by token. */
  #withoutSecretKeys(fields: object): object {
    const isHarmless = (key: string): boolean => key.length < MIN_SECRET_LENGTH || this.text(key) === key;
    if (Object.keys(fields).every(isHarmless)) return fields;
    return Object.fromEntries(Object.entries(fields).map(([key, field]: [string, unknown]) => [this.text(key), field]));
  }

  /** A text; if it is JSON, fields with the name of a secret are replaced too. */
  text(text: string): string {
    let shown = this.#isSecret !== undefined && /^\s*[[{]/.test(text) ? this.#json(text) : text;
    if (shown.length < this.#shortest) return shown;
    for (const hide of this.#texts) shown = hide(shown);
    return shown;
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

// The shapes of secrets. A quantifier without an upper limit is never followed by anything that could fail, or its
// characters cannot come before the match: then no text makes a pattern try the same characters more than once.

const TOKENS = [
  // Authorization: Bearer. With a digit, since many texts have "bearer" before another word.
  String.raw`[Bb]earer\s{1,4}(?=[A-Za-z._~+/-]{0,200}\d)[A-Za-z0-9._~+/-]{16,}=*`,
  String.raw`\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b`,
  String.raw`(?<=aws_secret_access_key["']?\s{0,4}[:=]\s{0,4}["']?)[A-Za-z0-9/+]{40}`,
  String.raw`\bgh[pousr]_[A-Za-z0-9]{36,255}`,
  String.raw`\bgithub_pat_\w{22,255}`,
  String.raw`(?<![\w-])glpat-[\w-]{20,}`,
  String.raw`(?<![\w-])xox[abeoprs]-[\w-]{10,}`,
  String.raw`(?<![\w-])xapp-[\w-]{20,}`,
  String.raw`hooks\.slack\.com/services/[\w/]{20,}`,
  // OpenAI, Anthropic and others.
  String.raw`(?<![\w-])sk-(?=[A-Za-z_-]{0,60}\d)[\w-]{20,}`,
  String.raw`\b[rsw][kh]_?(?:live|test|sec)_[A-Za-z0-9]{16,}`,
  String.raw`(?<![\w-])AIza[\w-]{35}`,
  String.raw`(?<![\w-])ya29\.[\w-]{20,}`,
  String.raw`\bnpm_[A-Za-z0-9]{36}\b`,
  String.raw`\bhf_[A-Za-z0-9]{30,}`,
  String.raw`\bdop_v1_[a-f0-9]{64}\b`,
].join("|");
const JWT = String.raw`(?<![\w-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{10,}`;
const CARD = String.raw`(?<![\d.-])\d(?:[ -]?\d){12,18}(?!\d)`;
const EMAIL = String.raw`(?<![\w.%+-])[\w.%+-]{1,64}@[A-Za-z0-9.-]{1,253}\.[A-Za-z]{2,24}`;
/** The length of the shortest match. */
const SHORTEST: Readonly<Record<SecretShape, number>> = {
  tokens: 15,
  jwts: 34,
  "private-keys": 27,
  cards: 13,
  emails: 6,
};

function hider(shape: SecretShape): (text: string) => string {
  if (shape === "private-keys") return hidePrivateKeys;
  const source = { tokens: TOKENS, jwts: JWT, cards: CARD, emails: EMAIL }[shape];
  const pattern = new RegExp(source, "g");
  // In a text without secrets, which is the usual case, it takes half the time of a replacement.
  const isThere = new RegExp(source);
  const hide = (found: string): string => {
    if (shape === "cards") return isCardNumber(found) ? REDACTED : found;
    return `${/^bearer\s+/i.exec(found)?.[0] ?? ""}${REDACTED}`;
  };
  return (text) => (isThere.test(text) ? text.replace(pattern, hide) : text);
}

const KEY_BEGIN = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/g;
const KEY_END = /-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/g;

/** Replaces PEM blocks. A block without an end reaches to the end of the text. */
function hidePrivateKeys(text: string): string {
  if (!text.includes("-----BEGIN ")) return text;
  let [shown, at] = ["", 0];
  for (;;) {
    KEY_BEGIN.lastIndex = at;
    const begin = KEY_BEGIN.exec(text);
    if (begin === null) return shown + text.slice(at);
    shown += text.slice(at, begin.index) + REDACTED;
    KEY_END.lastIndex = KEY_BEGIN.lastIndex;
    if (KEY_END.exec(text) === null) return shown;
    at = KEY_END.lastIndex;
  }
}

/** The check of Luhn. */
function isCardNumber(text: string): boolean {
  const digits = [...text.replaceAll(/\D/g, "")].toReversed().map(Number);
  const sum = digits.reduce((total, digit, index) => {
    const doubled = digit * 2;
    return total + (index % 2 === 0 ? digit : doubled > 9 ? doubled - 9 : doubled);
  }, 0);
  return sum % 10 === 0 && digits.some((digit) => digit !== 0);
}
