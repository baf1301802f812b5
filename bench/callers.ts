// The load: callers of a server over HTTP or stdio that are much cheaper than the server and check every response.

import type { ChildProcess } from "node:child_process";
import { MeasuredServer } from "./measured-server.ts";
import type { Start, Subject } from "./measurement.ts";
import { HttpConnection } from "./raw-http.ts";

type Style = "stateless" | "session";
type Tool = "echo" | "steps";

const TEXT = '"text":"hello there"';
const META =
  '"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"}';
export const INITIALIZE =
  '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}';
const INITIALIZED = '{"jsonrpc":"2.0","method":"notifications/initialized"}';

/** A call of a tool. `meta` is the inside of an object. */
function call(id: number, tool: Tool, meta = ""): string {
  const params = `${meta === "" ? "" : `"_meta":{${meta}},`}"name":"${tool}","arguments":{${TEXT}}`;
  return `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{${params}}}`;
}

/** Opens sessions and returns the headers of their requests. The bare server has none, and ignores the id. */
async function openSessions(url: string, count: number): Promise<string[]> {
  const connection = new HttpConnection(url);
  const { pathname } = new URL(url);
  const opened: string[] = [];
  for (let session = 0; session < count; session += 1) {
    const { head, body } = await connection.post(pathname, "", INITIALIZE);
    const [, id = "none"] = /\r\nmcp-session-id: (\S+)/i.exec(head) ?? [];
    const [, revision = "2025-11-25"] = /"protocolVersion":"([^"]+)"/.exec(body) ?? [];
    const headers = `MCP-Protocol-Version: ${revision}\r\nMcp-Session-Id: ${id}\r\n`;
    if (id !== "none") await connection.post(pathname, headers, INITIALIZED);
    opened.push(headers);
  }
  connection.close();
  return opened;
}

interface HttpLoad {
  readonly style: Style;
  readonly tool?: Tool;
  /** The number of keep-alive connections, each with one request at a time. */
  readonly connections?: number;
  /** The number of sessions that take turns. */
  readonly sessions?: number;
}

/** Starts a program of bench/programs and calls it over HTTP. */
export function overHttp(load: HttpLoad): (program: string, ...args: readonly string[]) => Start {
  return (program, ...args) =>
    async () =>
      callHttp(await MeasuredServer.start(program, args), load);
}

/** Starts a program of bench/programs and calls it over stdio. */
export function overStdio(
  inFlight: number,
  env?: NodeJS.ProcessEnv,
): (program: string, ...args: readonly string[]) => Start {
  return (program, ...args) =>
    async () => {
      const server = MeasuredServer.startStdio(program, args, env);
      const caller = new LineCaller(server.child);
      await caller.initialize();
      return { server, makeCalls: (count) => caller.makeCalls(count, inFlight) };
    };
}

async function callHttp(server: MeasuredServer, load: HttpLoad): Promise<Subject> {
  const { style, tool = "echo", sessions = 1 } = load;
  const { pathname } = new URL(server.url);
  const headers =
    style === "session"
      ? await openSessions(server.url, sessions)
      : [`MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: ${tool}\r\n`];
  const meta = [...(style === "stateless" ? [META] : []), ...(tool === "steps" ? ['"progressToken":7'] : [])].join(",");
  let id = 0;
  const makeCalls = async (count: number): Promise<void> => {
    let remaining = count;
    // New connections each time: a server closes those that are idle while the others have their turn.
    const work = async (): Promise<void> => {
      const connection = new HttpConnection(server.url);
      while (remaining > 0) {
        remaining -= 1;
        const mine = (id += 1);
        const own = headers[mine % headers.length] ?? "";
        const { status, body } = await connection.post(pathname, own, call(mine, tool, meta));
        const isWhole = tool === "echo" || body.includes("notifications/progress");
        if (status !== 200 || !isEcho(body, mine) || !isWhole)
          throw new Error(`Unexpected response to request ${mine}: ${status} ${body}`);
      }
      connection.close();
    };
    await Promise.all(Array.from({ length: load.connections ?? 1 }, work));
  };
  return { server, makeCalls };
}

function isEcho(response: string, id: number): boolean {
  return (response.includes(`"id":${id},`) || response.includes(`"id":${id}}`)) && response.includes(TEXT);
}

/** Sends lines to a child process and reads its lines. */
export class LineCaller {
  readonly #child: ChildProcess;
  #rest = "";
  #id = 0;
  #receive: (lines: readonly string[]) => void = () => undefined;
  #fail: (error: Error) => void = () => undefined;

  constructor(child: ChildProcess) {
    this.#child = child;
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      const lines = (this.#rest + text).split("\n");
      this.#rest = lines.pop() ?? "";
      if (lines.length > 0) this.#receive(lines);
    });
    child.stdin?.on("error", (error) => this.#fail(error));
    child.once("exit", () => this.#fail(new Error(`The program exited: ${child.spawnargs.join(" ")}`)));
  }

  /** Resolves with the next line. */
  request(line: string): Promise<string> {
    return new Promise((resolve, reject) => {
      this.#fail = reject;
      this.#receive = ([answer = ""]) => resolve(answer);
      this.#child.stdin?.write(`${line}\n`);
    });
  }

  async initialize(): Promise<void> {
    await this.request(INITIALIZE);
    this.#child.stdin?.write(`${INITIALIZED}\n`);
  }

  /** Resolves when all calls were answered; `inFlight` of them wait at any time. */
  makeCalls(count: number, inFlight: number): Promise<void> {
    const pending = new Set<number>();
    let unsent = count;
    const send = (free: number): void => {
      let lines = "";
      for (let sent = 0; sent < free && unsent > 0; sent += 1) {
        unsent -= 1;
        this.#id += 1;
        pending.add(this.#id);
        lines += `${call(this.#id, "echo")}\n`;
      }
      if (lines !== "") this.#child.stdin?.write(lines);
    };
    return new Promise((resolve, reject) => {
      this.#fail = reject;
      this.#receive = (lines) => {
        for (const line of lines) {
          const id = Number(/"id":(\d+)/.exec(line)?.[1]);
          if (!pending.delete(id) || !isEcho(line, id)) reject(new Error(`Unexpected line: ${line}`));
        }
        send(lines.length);
        if (pending.size === 0) resolve();
      };
      send(inFlight);
    });
  }
}
