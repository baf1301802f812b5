// The documents of the console's API, which the pages, `catenary watch`, `status` and other commands read. Types alone:
// the pages import them too. docs/reference/console-api.md describes them.

import type { LiveSession, TranscriptEvent } from "./live-types.ts";
import type { UpstreamStatus } from "../chain/upstream/options.ts";

export type * from "./live-types.ts";

/** What a row is: a call as a client made it, or what is nested under one. */
export type RowKind =
  /** A request of a client. */
  | "call"
  /** The same request again, with the answers to the questions of the call. */
  | "retry"
  /** A request about the task that the call has started. */
  | "poll"
  /** What the server asks the client during the call. */
  | "question"
  /** A call made by code that the call runs. */
  | "code";

/** `asked`: it has ended with questions, and waits for the client to retry it. */
export type RowStatus = "running" | "asked" | "ok" | "error" | "cancelled";

/** One row of Traffic. A row that changes is sent again, whole, with the same id. */
export interface CallRow {
  /** In the order in which rows begin. Unique while the gateway runs. */
  readonly id: number;
  /** The row that it is nested under. Absent for a logical call. */
  readonly parent?: number | undefined;
  readonly kind: RowKind;
  /** When it began, in milliseconds since 1970. */
  readonly at: number;
  /** How long it worked, without the time of persons. For a logical call: with its retries. Absent while it runs. */
  readonly ms?: number | undefined;
  /** How long persons took to answer its questions. Absent if nothing was asked. */
  readonly waitMs?: number | undefined;
  /** When it ended, in milliseconds since 1970; of a logical call, with its retries and polls. Absent while it runs. */
  readonly endedAt?: number | undefined;
  readonly method: string;
  /** The tool, prompt, URI or task, as the client names it. */
  readonly name?: string | undefined;
  /** The upstream that got it last, or that has what it names if it got to none. Absent for lists of several upstreams. */
  readonly server?: string | undefined;
  /** What the client calls itself, with its version. */
  readonly client?: string | undefined;
  readonly principal?: string | undefined;
  readonly revision?: string | undefined;
  readonly status: RowStatus;
  /** If it failed: the kind of error, such as `tool_error` or `timeout`, and the first characters of the message. */
  readonly error?: string | undefined;
  readonly errorText?: string | undefined;
  /** The approximate length of the request and of the result as JSON. */
  readonly sent?: number | undefined;
  readonly received?: number | undefined;
}

/** One value that a step changed: a path such as `arguments.body` or `content[0].text`, and its JSON before and after. */
export interface ValueChange {
  readonly path: string;
  /** Absent if it was added. */
  readonly before?: unknown;
  /** Absent if it was removed. */
  readonly after?: unknown;
}

/** What a transform, a middleware or an upstream did with a call. */
export interface StepView {
  readonly kind: "transform" | "middleware" | "router" | "upstream";
  readonly name: string;
  /** After the call had begun. */
  readonly startMs: number;
  /** How long it took, with what follows it. Absent while it runs. */
  readonly ms?: number;
  /** How long it took itself, without the steps inside it. */
  readonly ownMs?: number;
  /** What it changed of the request before it passed it on, and of the result before it returned it. */
  readonly request: readonly ValueChange[];
  readonly result: readonly ValueChange[];
  /** What it did besides, such as `answered without the upstream` or `asked the client`. */
  readonly note?: string;
  readonly error?: string;
  readonly steps: readonly StepView[];
}

/** A message on the wire, as it was sent. */
export interface WireMessage {
  /** Between the client and the gateway, or between the gateway and an upstream. */
  readonly side: "client" | "upstream";
  /** The upstream. */
  readonly server?: string;
  readonly sender: "client" | "server";
  /** In milliseconds since 1970. */
  readonly at: number;
  /** The protocol revision of this side. */
  readonly revision?: string;
  /** The JSON-RPC message. Absent if only heads of HTTP are known, or it was dropped. */
  readonly message?: unknown;
  /** The head of the HTTP request or response that carried it, without secrets. */
  readonly http?: HttpHead;
}

export interface HttpHead {
  /** Such as `POST /mcp` or `200 OK`. */
  readonly line: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** The document of `GET calls`. */
export interface CallPage {
  /** Logical calls, newest first, each followed by what is nested under it. */
  readonly calls: readonly CallRow[];
  /** There may be older ones: ask for those before this id. */
  readonly before?: number;
}

/** Everything that is kept of one row. */
export interface CallDetail {
  readonly row: CallRow;
  /** The rows nested under it, in the order in which they began. */
  readonly nested: readonly CallRow[];
  /** In the shape of the newest revision, secrets hidden. Absent if it was dropped. */
  readonly request?: { readonly method: string; readonly params: unknown };
  readonly result?: unknown;
  readonly error?: {
    readonly code?: number;
    readonly kind?: string;
    readonly message: string;
    readonly data?: unknown;
  };
  readonly steps: readonly StepView[];
  readonly wire: readonly WireMessage[];
  /** What the upstream wrote to stderr around that time. */
  readonly stderr: readonly LogLine[];
  /** Parts that were dropped to stay within the budget of bytes, or that are too long to be shown: the page says so. */
  readonly dropped: readonly ("request" | "result" | "steps" | "wire")[];
  /** The command that makes the same call: `catenary call ...`, and with curl. Absent if it cannot be made again. */
  readonly commands?: { readonly catenary: string; readonly curl: string };
}

/** An entry of the gateway's log. */
export interface LogLine {
  /** In ISO 8601, in UTC. */
  readonly time: string;
  readonly level: "info" | "warning" | "error";
  readonly upstream?: string;
  readonly stream?: "stderr" | "stdout";
  readonly message: string;
}

/** One thing that a person should do. */
export interface Need {
  /** The same while the need lasts. */
  readonly id: string;
  readonly kind: "sign-in" | "pin" | "failing" | "incomplete" | "question";
  readonly server?: string;
  /** One sentence: what is wrong. */
  readonly text: string;
  /** What to do, in the words of `catenary doctor`. */
  readonly hint?: string;
  /** Of a question. */
  readonly question?: Question;
}

/** A definition that `pin` holds back, because it is new or has changed. */
export interface HeldDefinition {
  readonly kind: "tool" | "prompt" | "template" | "instructions";
  /** At its server. */
  readonly name: string;
  readonly state: "new" | "changed";
  /** What tells this definition from others: an approval names it, so that nothing else is approved. */
  readonly digest: string;
  /** What has changed since the approval. Of a new one: all its fields. */
  readonly changes: readonly ValueChange[];
  /**
   * The same as text, for each field: lines that begin with "+ ", "- " or two spaces, in which all characters are visible.
   * Absent if a definition is too long to be kept.
   */
  readonly lines?: readonly { readonly field: string; readonly lines: readonly string[] }[];
}

/** What `pin` holds of a server. */
export interface PinReview {
  readonly server: string;
  readonly items: readonly HeldDefinition[];
}

/** What `POST sign-in` has begun. */
export interface SignInPage {
  /** Where the person signs in, http or https. Absent if the tokens that are there are enough. */
  readonly url?: string;
}

/** How a server is, for a person: `idle` starts with the first call, `sign-in` waits for a person. */
export type ServerHealth = "running" | "starting" | "idle" | "sign-in" | "failing" | "disabled" | "incomplete";

export interface ServerCard {
  readonly name: string;
  readonly health: ServerHealth;
  readonly status?: UpstreamStatus;
  /** Set if it is a server of live sessions: its language. */
  readonly live?: string;
  /** Since the gateway has started. */
  readonly calls: number;
  readonly errors: number;
  /** Of the last 1,000 calls; in milliseconds. */
  readonly p50?: number;
  readonly p95?: number;
  /** How many tools it has, as last listed, and how many tokens their definitions cost a client. */
  readonly tools?: number;
  readonly tokens?: number;
  /** Whether tokens are estimated: they are counted when Tools reads all lists. */
  readonly isEstimated?: true;
  /** The time of the last call, in milliseconds since 1970. */
  readonly lastAt?: number;
}

export interface ClientCard {
  readonly key: string;
  readonly name: string;
  readonly version?: string;
  readonly principal?: string;
  readonly revision: string;
  /** In milliseconds since 1970. */
  readonly since: number;
  readonly calls: number;
  readonly errors: number;
  readonly lastAt: number;
  /** The method or tool of its last call. */
  readonly last: string;
  /** Whether it has a session or a subscription that is open now. */
  readonly isConnected: boolean;
}

/** Calls and errors of the last 60 minutes, by server. `""` is what no server got. The last minute comes last. */
export interface Minutes {
  /** The beginning of the last minute, in milliseconds since 1970. */
  readonly last: number;
  readonly calls: Readonly<Record<string, readonly number[]>>;
  readonly errors: Readonly<Record<string, readonly number[]>>;
}

export interface Overview {
  readonly needs: readonly Need[];
  /** How many calls of clients there were, without what is nested under them. */
  readonly calls: number;
  readonly servers: readonly ServerCard[];
  readonly clients: readonly ClientCard[];
  readonly minutes: Minutes;
}

/** A running gateway, and what the console keeps of it. */
export interface ConsoleInfo {
  readonly name: string;
  readonly version: string;
  readonly pid: number;
  /** The absolute path of the config; absent if it is served without one. */
  readonly config?: string;
  readonly source: string;
  readonly url: string;
  readonly startedAt: string;
  /** The last rows are kept, and bodies, steps and messages within so many bytes. */
  readonly keptRows: number;
  readonly keptBytes: number;
  /** How the terminal calls `catenary`, if it is started otherwise, such as `npx catenary`. */
  readonly command?: string;
  /** Whether callers must send a token. */
  readonly hasToken?: true;
  /** Since when calls are observed, in milliseconds since 1970; absent if they are not. */
  readonly keptSince?: number;
}

/** A running gateway and its upstreams: the document of `GET status`. */
export interface GatewayDocument extends Omit<ConsoleInfo, "keptRows" | "keptBytes" | "keptSince"> {
  readonly upstreams: Readonly<Record<string, UpstreamStatus>>;
}

/** A tool, prompt, resource or template of a server. */
export interface CatalogueItem {
  readonly kind: "tools" | "prompts" | "resources" | "templates";
  /** As clients name it. */
  readonly name: string;
  /** At its server, if that differs. */
  readonly ownName?: string;
  readonly server?: string;
  readonly title?: string;
  /** As clients get it. */
  readonly definition: { readonly [field: string]: unknown };
  /** How many tokens the definition costs. */
  readonly tokens: number;
  /** Set if clients do not get it: why. `disabled`: hidden here or by `catenary disable`. */
  readonly hidden?: "disabled" | "chain";
}

export interface Catalogue {
  readonly items: readonly CatalogueItem[];
  /** The sum of what clients get. */
  readonly tokens: number;
  /** Whether tokens are counted by a tokenizer or estimated. */
  readonly isEstimated: boolean;
  /** Servers whose items cannot be listed, and why. */
  readonly problems: Readonly<Record<string, string>>;
  /** Servers that are hidden from clients, and do not run. */
  readonly disabled: readonly string[];
  /** Whether hiding is written to a config; absent if there is none, so that it ends with the gateway. */
  readonly config?: string;
}

/** What `POST hide` and `POST show` return. */
export interface HidingDocument {
  readonly server: string;
  readonly tool?: string;
  readonly hidden: boolean;
  /** The file that has it now; absent if there is none, so that it ends with the gateway. */
  readonly config?: string;
  /** The file as it was. Absent if nothing was to be changed in it. */
  readonly backup?: string;
}

/** A question of a server that waits for an answer. */
export interface Question {
  readonly id: string;
  /** Who asks. */
  readonly server?: string;
  readonly method: string;
  readonly params: { readonly [name: string]: unknown };
  /** The call that waits: of the console, which can answer it here, or the row of a client's call, which the client answers. */
  readonly call?: string;
  readonly row?: number;
  readonly client?: string;
  /** In milliseconds since 1970. */
  readonly since: number;
}

/** What `POST call` streams: first `started`, last `ended`. */
export type OperatorEvent =
  | { readonly type: "started"; readonly call: string }
  | { readonly type: "row"; readonly row: number }
  | { readonly type: "progress"; readonly progress: number; readonly total?: number; readonly message?: string }
  | { readonly type: "log"; readonly level: string; readonly data: unknown }
  | { readonly type: "question"; readonly question: Question }
  | { readonly type: "answered"; readonly question: string }
  | {
      readonly type: "ended";
      readonly ms: number;
      readonly result?: { readonly [field: string]: unknown };
      readonly error?: CallDetail["error"];
    };

/** The events of `GET events`: the name of each, and its data. */
export interface FeedEvents {
  readonly info: ConsoleInfo;
  /** New and changed rows. */
  readonly calls: readonly CallRow[];
  readonly overview: Overview;
  readonly log: readonly LogLine[];
  /** All questions that wait. */
  readonly questions: readonly Question[];
  /** The catalogue may have changed: read it again. */
  readonly catalogue: { readonly version: number };
  /** All live sessions. */
  readonly live: readonly LiveSession[];
  /** What happens in a live session that the page watches. */
  readonly transcript: readonly TranscriptEvent[];
}

export type FeedTopic = keyof FeedEvents;

/** A box in the picture of the chain. */
export interface ChainNode {
  readonly id: string;
  readonly kind: "client" | "transform" | "middleware" | "router" | "upstream";
  readonly name: string;
  readonly calls: number;
  readonly errors: number;
  /** The median of its own time, in milliseconds. */
  readonly p50?: number;
  /** How many calls it has changed. */
  readonly changed?: number;
  readonly note?: string;
  readonly health?: ServerHealth;
  /** The upstream whose lane it is in. */
  readonly server?: string;
  /**
   * The last calls that it has changed, answered or refused; of a client, a router and an upstream, the last calls. The
   * newest first. What was changed is there for the node that was asked for, while the steps of the call are kept.
   */
  readonly last: readonly ({
    readonly row: number;
    readonly at: number;
    /** The name of the tool, or the method. */
    readonly call: string;
  } & Pick<StepView, "request" | "result" | "note" | "error">)[];
}

export interface ChainPicture {
  readonly nodes: readonly ChainNode[];
  /** From, to. */
  readonly edges: readonly (readonly [string, string])[];
}
