// A gateway in code mode with the matrix server behind it over stdio, for callers over HTTP and stdio. Without the sandbox,
// so that the tests run everywhere.

import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AuthError, type Authenticator } from "../../../src/core/authentication.ts";
import { chain, connect, serve, upstream, type Client, type Middleware } from "../../../src/index.ts";
import type { ConnectOptions } from "../../../src/client/index.ts";
import { codeMode, type CodeModeOptions } from "../../../src/live/index.ts";
import { NEWEST } from "../../../src/protocol/revisions/index.ts";
import type { CallToolResult } from "../../../src/protocol/model/index.ts";
import { compiled } from "../../support/programs.ts";
import { canListProcesses, withEnvironment } from "../../support/processes.ts";
import { CLI } from "../cli/cli-process.ts";

const auth: Authenticator = {
  authenticate: async ({ headers }) => {
    const [, principal] = /^Bearer (\w+)$/.exec(headers["authorization"] ?? "") ?? [];
    if (principal === undefined) throw new AuthError(401, "Who are you?", "Bearer");
    return { principal };
  },
};

/** A variable that child processes inherit. */
const MARK = "CATENARY_CODE_TEST";

const matrixServer = (revision: string) => ({
  command: process.execPath,
  args: [compiled("../../matrix/server-program.ts", import.meta.url), revision],
});

export interface RunAnswer extends CallToolResult {
  readonly text: string;
  readonly calls: readonly { readonly tool: string; readonly isError?: true }[];
}

export class CodeFixture {
  readonly #closing: (() => unknown)[] = [];

  /** The address of a gateway over HTTP. A caller is who it says in its token. */
  async http(middleware: readonly Middleware[] = [], options: CodeModeOptions = {}): Promise<string> {
    const gateway = chain(...middleware).to({ matrix: upstream(matrixServer(NEWEST.name), { remember: false }) });
    const front = await serve(codeMode(gateway, { sandbox: false, ...options }), { http: { port: 0, auth } });
    this.#closing.unshift(() => front.close());
    return front.url ?? "";
  }

  /** A command that starts a gateway, from a config. */
  stdio(options: object = {}, revision: string = NEWEST.name): { command: string; args: string[]; mark: string } {
    const folder = mkdtempSync(join(tmpdir(), "catenary-code-"));
    this.#closing.unshift(() => rmSync(folder, { recursive: true, force: true }));
    const file = join(folder, "catenary.json");
    const config = { mcpServers: { matrix: matrixServer(revision) }, code: { sandbox: false, ...options } };
    writeFileSync(file, JSON.stringify(config));
    return { command: process.execPath, args: [CLI, "serve", file], mark: randomUUID() };
  }

  async connectHttp(url: string, who: string, options: ConnectOptions = {}): Promise<Client> {
    return this.#opened(await connect(url, { ...options, headers: { authorization: `Bearer ${who}` } }));
  }

  async connectStdio(program: ReturnType<CodeFixture["stdio"]>, options: ConnectOptions = {}): Promise<Client> {
    const { mark, ...command } = program;
    return this.#opened(await connect({ ...command, env: { [MARK]: mark } }, options));
  }

  #opened(client: Client): Client {
    this.#closing.unshift(() => client.close());
    return client;
  }

  async close(): Promise<void> {
    for (const close of this.#closing.splice(0)) await close();
  }
}

/** The processes that a gateway over stdio has started, and itself; none where they cannot be listed. */
export function processesOf({ mark }: { readonly mark: string }): readonly number[] {
  return canListProcesses ? withEnvironment(MARK, mark) : [];
}

export async function runCode(client: Client, code: string, more: object = {}): Promise<RunAnswer> {
  return withText(await client.callTool("run-code", { code, ...more }));
}

export function withText(result: CallToolResult): RunAnswer {
  const { text = "" } = (result.content[0] ?? {}) as { text?: string };
  const { calls = [] } = (result.structuredContent ?? {}) as Partial<RunAnswer>;
  return { ...result, text, calls };
}
