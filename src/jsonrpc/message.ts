// The four messages of JSON-RPC 2.0 and the id that ties an answer to its question.
// An id comes back byte for byte. JavaScript would turn 1.0 into 1 and 9007199254740993 into
// ...992, so a token that JavaScript would write differently is kept as `Exact`; every other id is
// the plain string or number that it looks like. Nothing here knows of MCP.

/** An id, or a token that stands for one, whose source text JavaScript would not write back alike. */
export class Exact {
  readonly raw: string;
  readonly value: string | number;
  constructor(raw: string, value: string | number) {
    this.raw = raw;
    this.value = value;
  }
  /** Inside `stringify` a placeholder for the source text; anywhere else (a log, say) the plain value. */
  toJSON(): string | number {
    return writing === undefined ? this.value : writing.leave(this);
  }
}

/** The Exact tokens met by one `stringify`. Its mark is made anew each time, so nobody can write it in advance. */
class Placeholders {
  #mark = "";
  readonly #met: Exact[] = [];
  leave(exact: Exact): string {
    if (this.#mark === "") this.#mark = crypto.randomUUID();
    return this.#mark + ":" + (this.#met.push(exact) - 1);
  }
  fill(text: string): string {
    if (this.#mark === "") return text;
    return text.replace(new RegExp(`"${this.#mark}:(\\d+)"`, "g"), (found, at: string) => {
      return this.#met[Number(at)]?.raw ?? found;
    });
  }
}

let writing: Placeholders | undefined;

/** JSON.stringify, but an Exact anywhere inside is written as its source text. Throws what JSON.stringify throws. */
export function stringify(value: unknown): string | undefined {
  const outer = writing;
  const own = new Placeholders();
  writing = own;
  let text: string | undefined;
  try {
    text = JSON.stringify(value) as string | undefined;
  } finally {
    writing = outer;
  }
  return text === undefined ? undefined : own.fill(text);
}

export type Id = string | number | Exact;

/** One key for one id: strings by their value, numbers by their text, so that 1, 1.0 and "1" differ. */
export function idKey(id: Id): string {
  if (typeof id === "number") return String(id);
  if (typeof id === "string") return '"' + id;
  return typeof id.value === "string" ? '"' + id.value : id.raw;
}

/** Whether a parsed value can be an id, or stand for one. */
export function isId(value: unknown): value is Id {
  return typeof value === "number" || typeof value === "string" || value instanceof Exact;
}

export type Params = { readonly [key: string]: unknown };

export interface RequestMessage {
  readonly jsonrpc: "2.0";
  readonly id: Id;
  readonly method: string;
  readonly params?: Params;
}

export interface NotificationMessage {
  readonly jsonrpc: "2.0";
  readonly method: string;
  readonly params?: Params;
}

export interface ResultMessage {
  readonly jsonrpc: "2.0";
  readonly id: Id;
  readonly result: { readonly [key: string]: unknown };
}

export interface ErrorBody {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

/** `id` is null where the id of the faulty message could not be read. */
export interface ErrorMessage {
  readonly jsonrpc: "2.0";
  readonly id: Id | null;
  readonly error: ErrorBody;
}

export type ResponseMessage = ResultMessage | ErrorMessage;
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
