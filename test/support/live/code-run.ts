// A runner of code in any language, in front of an in-memory server with tools of every kind of result, for tests of what
// the code of a session can do with tools.

import type { Client } from "../../../src/client/client.ts";
import { connect } from "../../../src/client/connect.ts";
import type { Handler } from "../../../src/core/handler.ts";
import { createCodeRunner, type CodeRunnerOptions } from "../../../src/live/code-mode.ts";
import type { RunTools } from "../../../src/live/offered-tools.ts";
import type { Language } from "../../../src/live/tool.ts";
import { createServer } from "../../../src/server/server.ts";

export interface RunAnswer {
  readonly isError?: boolean;
  readonly content: readonly { readonly type: string; readonly text: string; readonly data?: string }[];
  readonly structuredContent: {
    readonly status: string;
    readonly state: string;
    readonly calls: readonly {
      readonly tool: string;
      readonly ms: number;
      readonly bytes: number;
      readonly isError?: true;
    }[];
  };
}

export interface RunningCode {
  readonly client: Client;
  /** How many calls of `wait` have begun, and how many of them were cancelled. */
  readonly waits: { begun: number; cancelled: number; most: number };
  /** Resolves when so many calls of `wait` have begun. */
  begun(count: number): Promise<void>;
  /** Lets all calls of `wait` end. */
  release(): void;
  run(code: string, more?: object): Promise<RunAnswer>;
  /** The text of the result. */
  text(code: string, more?: object): Promise<string>;
  close(): Promise<void>;
}

const ANY = { inputSchema: { type: "object" } } as const;

/** The schemas that tools are listed with; the others have none. */
const SCHEMAS: Readonly<Record<string, object>> = {
  given: { type: "object", properties: { maxResults: {}, page_size: {}, "dry-run": {} } },
};

async function toolsOf(gateway: Handler, context: Parameters<Handler>[1]): Promise<RunTools> {
  const { tools } = await gateway({ method: "tools/list", params: {} }, context);
  const entries = (tools as { name: string }[]).map(({ name }) => ({
    path: `notes.${name}`,
    name,
    signature: `notes.${name}(...)`,
    summary: `The tool ${name}`,
    tool: { inputSchema: SCHEMAS[name] },
    isDestructive: false,
  }));
  return {
    entries,
    missing: new Map(),
    gateway,
    search: async (query, limit) => entries.filter(({ name }) => name.includes(query)).slice(0, limit),
  };
}

export async function startCode(language: Language, options: Partial<CodeRunnerOptions> = {}): Promise<RunningCode> {
  const waits = { begun: 0, cancelled: 0, most: 0 };
  let open = new Set<() => void>();
  let watchers: { readonly count: number; readonly resolve: () => void }[] = [];
  const notes = createServer({ name: "notes", version: "1.0.0" })
    .tool("echo", ANY, (args) => String(args["text"]))
    .tool("given", ANY, (args) => JSON.stringify(args))
    .tool("add", ANY, (args) => ({ sum: Number(args["a"]) + Number(args["b"]) }))
    .tool("everything", ANY, () => ({
      list: [1, -2.5, 1e21, [], {}],
      yes: true,
      no: false,
      nothing: null,
      text: 'naïve 𝒳 "q" \\ \n',
    }))
    .tool("said", ANY, () => ({ content: [{ type: "text", text: "=> 2" }], structuredContent: { status: "ok" } }))
    .tool("large", ANY, (args) => "x".repeat(Number(args["size"])))
    .tool("fail", ANY, () => ({ content: [{ type: "text", text: "It is locked" }], isError: true }))
    .tool("picture", ANY, () => ({
      content: [
        { type: "text", text: "A dot" },
        { type: "image", data: "AAAA", mimeType: "image/png" },
      ],
    }))
    .tool("wait", ANY, async (args, context) => {
      waits.begun += 1;
      watchers = watchers.filter(({ count, resolve }) => waits.begun < count || resolve());
      const isReleased = await new Promise<boolean>((resolve) => {
        const release = (): void => resolve(true);
        open.add(release);
        waits.most = Math.max(waits.most, open.size);
        context.signal.addEventListener("abort", () => {
          open.delete(release);
          waits.cancelled += 1;
          resolve(false);
        });
      });
      return isReleased ? `waited for ${String(args["what"])}` : "cancelled";
    });
  const runner = createCodeRunner(language, { tools: (context) => toolsOf(notes, context), ...options });
  const client = await connect(runner.handler);
  const run = async (code: string, more = {}): Promise<RunAnswer> =>
    (await client.callTool("run-code", { code, ...more })) as unknown as RunAnswer;
  return {
    client,
    waits,
    begun: async (count) => {
      if (waits.begun < count) await new Promise<void>((resolve) => watchers.push({ count, resolve }));
    },
    release: () => {
      for (const end of open) end();
      open = new Set();
    },
    run,
    text: async (code, more) => (await run(code, more)).content[0]?.text ?? "",
    close: async () => {
      await client.close();
      await runner.close();
    },
  };
}
