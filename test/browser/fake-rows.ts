// Rows of Traffic that look like those of a working day, made from a seed, for pages that are shown without a gateway.

import type { CallDetail, CallRow, Minutes, Overview } from "../../src/console/types.ts";
import { REVISIONS } from "../../src/protocol/revisions/index.ts";

const TOOLS: readonly (readonly [string, string, number])[] = [
  ["files", "read_text_file", 4],
  ["files", "list_directory", 3],
  ["files", "write_file", 9],
  ["github", "search_issues", 380],
  ["github", "create_issue", 520],
  ["github", "get_file_contents", 160],
  ["js", "evaluate", 40],
  ["postgres", "query", 22],
];
const CLIENTS = ["Claude Code 2.4", "VS Code 1.118", "Cursor 3.1"];
const NAMES = REVISIONS.map(({ name }) => name);

/** Numbers between 0 and 1, the same for the same seed. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Makes rows, in the order in which they begin. One call in thirty asks a person, one in forty runs code. */
export class FakeRows {
  readonly #random: () => number;
  #id = 0;

  constructor(seed = 1) {
    this.#random = randomFrom(seed);
  }

  get last(): number {
    return this.#id;
  }

  /** A logical call that began at this time, with its nested rows after it. */
  call(at: number): CallRow[] {
    const random = this.#random;
    const [server = "", name = "", usual = 1] = TOOLS[Math.floor(random() ** 1.6 * TOOLS.length)] ?? [];
    const ms = usual * (0.4 + random() * 1.6) * (random() < 0.05 ? 6 : 1);
    const client = CLIENTS[Math.floor(random() ** 2 * CLIENTS.length)] ?? "";
    const common = { at, client, revision: NAMES[CLIENTS.indexOf(client) === 0 ? 4 : 2], sent: 90, received: 800 };
    const kind = random();
    if (kind < 0.033) return this.#asking(common, ms);
    if (kind < 0.058) return this.#code(common, ms);
    const failed = random() < 0.03 && {
      status: "error" as const,
      error: "tool_error",
      errorText: "No such file: notes.md",
    };
    const row = this.#row({
      ...common,
      method: "tools/call",
      name,
      server,
      ms,
      endedAt: at + ms,
      status: "ok",
      ...failed,
    });
    return [row];
  }

  #asking(common: Pick<CallRow, "at" | "client" | "revision">, ms: number): CallRow[] {
    const waitMs = 2000 + 6000 * this.#random();
    const { at } = common;
    const more = { method: "tools/call", name: "create_issue", server: "github", status: "ok" as const };
    const row = this.#row({ ...common, ...more, ms, waitMs, endedAt: at + ms + waitMs });
    const question = {
      kind: "question" as const,
      method: "elicitation/create",
      server: "github",
      status: "ok" as const,
    };
    const asked = at + ms * 0.6;
    return [
      row,
      this.#row({ ...common, ...question, parent: row.id, at: asked, ms: 0, waitMs, endedAt: asked + waitMs }),
    ];
  }

  #code(common: Pick<CallRow, "at" | "client" | "revision">, ms: number): CallRow[] {
    const count = 2 + Math.floor(this.#random() * 3);
    const each = Math.max(4, ms / count);
    const { at } = common;
    const more = { method: "tools/call", name: "run_code", server: "code", status: "ok" as const };
    const row = this.#row({ ...common, ...more, ms: each * count, endedAt: at + each * count });
    const nested = Array.from({ length: count }, (_, index) => {
      const begun = at + index * each;
      const inner = { method: "tools/call", name: "list_pulls", server: "github", status: "ok" as const };
      return this.#row({
        ...common,
        ...inner,
        kind: "code",
        parent: row.id,
        at: begun,
        ms: each * 0.9,
        endedAt: begun + each * 0.9,
      });
    });
    return [row, ...nested];
  }

  #row(fields: Partial<CallRow> & Pick<CallRow, "at" | "method" | "status">): CallRow {
    this.#id += 1;
    return { id: this.#id, kind: "call", ...fields };
  }
}

function fakeMinutes(now: number): Minutes {
  const random = randomFrom(7);
  const series = (height: number): number[] =>
    Array.from({ length: 60 }, (_, index) =>
      Math.round(height * (0.5 + 0.4 * Math.sin(index / 6 + height) + 0.4 * random())),
    );
  const errors = Array.from({ length: 60 }, (_, index) => (index % 17 === 5 ? 2 : 0));
  return {
    last: Math.floor(now / 60_000) * 60_000,
    calls: { files: series(38), github: series(14), js: series(5) },
    errors: { github: errors },
  };
}

export function fakeOverview(now: number): Overview {
  const [oldest = "", , middle = "", , newest = ""] = NAMES;
  const status = { target: "npx server", sessions: 1, pids: [4711], restarts: 0, state: "running" as const };
  return {
    needs: [
      { id: "sign-in linear", kind: "sign-in", server: "linear", text: "Its sign-in has expired" },
      { id: "pin github", kind: "pin", server: "github", text: "2 definitions are new or changed, and held back" },
      {
        id: "failing postgres",
        kind: "failing",
        server: "postgres",
        text: "It exits at start with status 1: DATABASE_URL is not set",
        hint: 'set DATABASE_URL in its entry: "env": {"DATABASE_URL": "..."}',
      },
      {
        id: "question q1",
        kind: "question",
        server: "github",
        text: "github asks you",
        question: {
          id: "q1",
          server: "github",
          method: "elicitation/create",
          call: "c1",
          since: now - 20_000,
          params: {
            message: "Create the issue in a public repository?",
            requestedSchema: {
              type: "object",
              properties: {
                reason: { type: "string", title: "Reason" },
                notify: { type: "boolean", title: "Notify the team" },
              },
              required: ["reason"],
            },
          },
        },
      },
    ],
    servers: [
      {
        name: "files",
        health: "running",
        status: { ...status, revision: middle },
        calls: 9120,
        errors: 2,
        p50: 4,
        p95: 31,
        tools: 14,
        tokens: 1830,
        lastAt: now - 2000,
      },
      {
        name: "github",
        health: "running",
        status: { ...status, revision: newest, restarts: 2 },
        calls: 3120,
        errors: 41,
        p50: 180,
        p95: 640,
        tools: 51,
        tokens: 12_400,
        lastAt: now - 8000,
      },
      {
        name: "linear",
        health: "sign-in",
        status: { ...status, state: "failed", sessions: 0, pids: [], revision: middle },
        calls: 0,
        errors: 0,
        tools: 22,
        tokens: 4100,
      },
      {
        name: "postgres",
        health: "failing",
        status: {
          ...status,
          state: "restarting",
          sessions: 0,
          pids: [],
          restarts: 4,
          restartInMs: 31_000,
          problem: "It exits at start with status 1: DATABASE_URL is not set",
          reason: "exit 1: DATABASE_URL is not set",
        },
        calls: 3,
        errors: 3,
      },
      {
        name: "js",
        health: "running",
        live: "js",
        status: { ...status, revision: newest },
        calls: 220,
        errors: 1,
        p50: 38,
        p95: 210,
        tools: 18,
        tokens: 2600,
        lastAt: now - 60_000,
      },
      {
        name: "browser",
        health: "idle",
        status: { ...status, state: "idle", sessions: 0, pids: [], revision: oldest },
        calls: 0,
        errors: 0,
        tools: 29,
        tokens: 5400,
      },
    ],
    clients: [
      {
        key: "a",
        name: "Claude Code",
        version: "2.4",
        revision: newest,
        since: now - 9_000_000,
        calls: 913,
        errors: 2,
        lastAt: now - 3000,
        last: "files_read_text_file",
        isConnected: true,
      },
      {
        key: "b",
        name: "VS Code",
        version: "1.118",
        revision: middle,
        since: now - 4_000_000,
        calls: 288,
        errors: 0,
        lastAt: now - 61_000,
        last: "github_search_issues",
        isConnected: true,
      },
      {
        key: "c",
        name: "Cursor",
        version: "3.1",
        revision: oldest,
        since: now - 7_000_000,
        calls: 3,
        errors: 0,
        lastAt: now - 2_460_000,
        last: "tools/list",
        isConnected: false,
      },
    ],
    minutes: fakeMinutes(now),
    calls: 3,
  };
}

/** The detail of a row. */
export function fakeDetail(row: CallRow, nested: readonly CallRow[]): CallDetail {
  const [, , middle = "", , newest = ""] = NAMES;
  const request = {
    method: row.method,
    params: {
      name: row.name,
      arguments: {
        repo: "catenary/catenary",
        title: "Names with dots",
        body: "The key is [secret], as always.\nSecond line.",
      },
    },
  };
  const result = {
    content: [{ type: "text", text: "Created #412" }],
    structuredContent: { number: 412, labels: ["bug", "names"] },
  };
  const step = (name: string, ownMs: number) => ({
    name,
    kind: "middleware" as const,
    startMs: 0,
    ms: ownMs,
    ownMs,
    request: [],
    result: [],
    steps: [],
  });
  const wire = (side: "client" | "upstream", sender: "client" | "server", at: number, message: unknown) => ({
    side,
    sender,
    at: row.at + at,
    message,
    revision: side === "client" ? newest : middle,
    ...(side === "upstream" && { server: "github" }),
    ...(side === "client" && {
      http: {
        line: sender === "client" ? "POST /mcp" : "200 OK",
        headers: { "content-type": "application/json", "mcp-method": "tools/call" },
      },
    }),
  });
  const error =
    row.status === "error" ? { kind: row.error ?? "", message: row.errorText ?? "", code: -32_000 } : undefined;
  return {
    row,
    nested,
    request,
    ...(error === undefined ? { result } : { error }),
    steps: [
      {
        ...step("redact", 0.03),
        request: [{ path: "arguments.body", before: "The key is sk-live-51H…", after: "The key is [secret]" }],
        steps: [
          {
            ...step("confirm", 5100),
            note: "asked the person: accepted",
            steps: [
              {
                ...step("rename", 0.01),
                kind: "transform",
                request: [{ path: "name", before: "create_issue", after: "issue_write" }],
                steps: [
                  {
                    ...step("router", 0.2),
                    kind: "router",
                    steps: [{ ...step("github", 482), kind: "upstream", note: "answered, 1 block of text" }],
                  },
                ],
              },
            ],
          },
        ],
      },
    ],
    wire: [
      wire("client", "client", 0, { jsonrpc: "2.0", id: 7, ...request }),
      wire("upstream", "client", 1, { jsonrpc: "2.0", id: 31, ...request }),
      wire("upstream", "server", 483, { jsonrpc: "2.0", id: 31, result }),
      wire("client", "server", 486, { jsonrpc: "2.0", id: 7, result }),
    ],
    stderr: [
      {
        time: new Date(row.at).toISOString(),
        level: "info",
        upstream: "github",
        stream: "stderr",
        message: "\u001b[32mGET\u001b[0m /repos/catenary 200",
      },
    ],
    dropped: [],
    commands: {
      catenary: "catenary call github create_issue repo=catenary/catenary",
      curl: "curl -sS http://127.0.0.1:7330/mcp -d '{...}'",
    },
  };
}
