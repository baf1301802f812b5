// The four messages of JSON-RPC 2.0 and their ids. A response must repeat the id byte for byte, but JavaScript turns
// 1.0 into 1 and 9007199254740993 into ...992. So an id that JavaScript would write differently is an `ExactId`; every
// other id is a plain string or number.

/** An id, or a token such as a progress token, that JavaScript would write differently. */
export class ExactId {
  readonly raw: string;
  readonly value: string | number;
  constructor(raw: string, value: string | number) {
    this.raw = raw;
    this.value = value;
  }
  /** Inside `stringify`, a placeholder for the source text; anywhere else, such as in a log, the plain value. */
  toJSON(): string | number {
    return isWriting ? (placeholders ??= new Placeholders()).add(this) : this.value;
  }
}

/** The ExactIds found by one `stringify`. The mark is random each time, so that no input can contain it. */
class Placeholders {
  readonly #mark = crypto.randomUUID();
  readonly #exactIds: ExactId[] = [];
  add(exact: ExactId): string {
    return this.#mark + ":" + (this.#exactIds.push(exact) - 1);
  }
  fill(text: string): string {
    return text.replace(new RegExp(`"${this.#mark}:(\\d+)"`, "g"), (match, index: string) => {
      return this.#exactIds[Number(index)]?.raw ?? match;
    });
  }
}

/** Whether `stringify` is running. It may run inside another one, if a value has a `toJSON` that uses it. */
let isWriting = false;
let placeholders: Placeholders | undefined;

/** The type in the library does not say that there may be no JSON form. */
const toJson: (value: unknown) => string | undefined = JSON.stringify;

/**
 * JSON.stringify, but an ExactId anywhere inside is written as its source text. Throws a TypeError that begins with the
 * name if the value has no JSON form.
 */
export function stringify(name: string, value: unknown): string {
  const wasWriting = isWriting;
  const outer = placeholders;
  isWriting = true;
  placeholders = undefined;
  try {
    const text = toJson(value);
    if (text === undefined) throw new TypeError(`${name} has no JSON form`);
    // The type system does not see that a `toJSON` may have set it.
    const used = placeholders as Placeholders | undefined;
    return used === undefined ? text : used.fill(text);
  } finally {
    isWriting = wasWriting;
    placeholders = outer;
  }
}

/** The id of a JSON-RPC request. */
export type Id = string | number | ExactId;

/** A map key for an id: strings by value, numbers as they are written, so that 1, 1.0 and "1" differ. */
export type IdKey = string | number;

export function idKey(id: Id): IdKey {
  if (typeof id === "number") return id;
  if (typeof id === "string") return '"' + id;
  return typeof id.value === "string" ? '"' + id.value : id.raw;
}

/** The id as JavaScript reads it, to find a request of ours: another spelling of our id is the same id. */
export function plainId(id: Id): string | number;
export function plainId(id: Id | null): string | number | null;
export function plainId(id: Id | null): string | number | null {
  return id instanceof ExactId ? id.value : id;
}

export function isId(value: unknown): value is Id {
  return typeof value === "number" || typeof value === "string" || value instanceof ExactId;
}

export type Params = { readonly [key: string]: unknown };

/** A JSON-RPC request. */
export interface RequestMessage {
  readonly jsonrpc: "2.0";
  readonly id: Id;
  readonly method: string;
  readonly params?: Params;
}

/** A JSON-RPC notification: a request without an id, to which there is no response. */
export interface NotificationMessage {
  readonly jsonrpc: "2.0";
  readonly method: string;
  readonly params?: Params;
}

/** The response to a request that succeeded. */
export interface ResultMessage {
  readonly jsonrpc: "2.0";
  readonly id: Id;
  readonly result: { readonly [key: string]: unknown };
}

/** What went wrong with a request. */
export interface ErrorBody {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

export function isErrorBody(value: unknown): value is ErrorBody {
  if (typeof value !== "object" || value === null || !("code" in value) || !("message" in value)) return false;
  return Number.isInteger(value.code) && typeof value.message === "string";
}

/** `id` is null if the id of the invalid message could not be read. */
export interface ErrorMessage {
  readonly jsonrpc: "2.0";
  readonly id: Id | null;
  readonly error: ErrorBody;
}

/** The response to a request. */
export type ResponseMessage = ResultMessage | ErrorMessage;
/** Any JSON-RPC message. */
export type Message = RequestMessage | NotificationMessage | ResponseMessage;

export function isRequest(message: Message): message is RequestMessage {
  return "method" in message && "id" in message;
}

export function isNotification(message: Message): message is NotificationMessage {
  return "method" in message && !("id" in message);
}

export function isResponse(message: Message): message is ResponseMessage {
  return !("method" in message);
}

export function isBatch(message: Message | readonly Message[]): message is readonly Message[] {
  return Array.isArray(message);
}
