// A server as a child process: its output, its exit, and how the transport reports them.

import { afterEach, expect, it } from "vitest";
import type { ConnectionError } from "../core/errors.ts";
import type { Message } from "../jsonrpc/message.ts";
import { listProcesses } from "../process/process-tree.ts";
import { childTransport } from "./child-process.ts";
import type { ChildTransport, ChildTransportOptions } from "./child-process.ts";
import { messageOf, type SeenInbound } from "../../test/support/dialogue/seen-inbound.ts";
import { IS_LONG, sampleOf } from "../../test/support/thoroughness.ts";

const ping = (id: number): Message => ({ jsonrpc: "2.0", id, method: "ping" });
const open: ChildTransport[] = [];

interface Talk {
  readonly transport: ChildTransport;
  readonly got: SeenInbound[];
  readonly ended: Promise<SeenInbound>;
  /** Resolves when `count` items have been received. */
  until(count: number): Promise<void>;
}

/** A server written as a Node script, with short grace periods. */
async function talk(script: string, options: Partial<ChildTransportOptions> = {}): Promise<Talk> {
  const command = { command: process.execPath, args: ["-e", script], stdinGraceMs: 200, termGraceMs: 200 };
  const transport = childTransport({ ...command, ...options });
  open.push(transport);
  const got: SeenInbound[] = [];
  const waiting = new Set<() => void>();
  const until = (met: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      const look = (): void => {
        if (met() && waiting.delete(look)) resolve();
      };
      waiting.add(look);
      look();
    });
  const ended = until(() => got.at(-1)?.kind === "end").then(() => got.at(-1) as SeenInbound);
  await transport.start((inbound) => {
    got.push(inbound);
    for (const look of waiting) look();
  });
  return { transport, got, ended, until: (count) => until(() => got.length >= count) };
}

const ECHO = `
  require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
    const { id, method } = JSON.parse(line);
    console.log(JSON.stringify({ jsonrpc: "2.0", id, result: { method } }));
  });`;

afterEach(async () => {
  for (const transport of open.splice(0)) {
    await transport.close(500);
    const mark = transport.child?.mark;
    const left = mark === undefined ? [] : ((await listProcesses()) ?? []).filter((one) => one.marks.includes(mark));
    expect(left).toEqual([]);
  }
});

it("childTransport carries messages in both directions, and ends without an error on close", async () => {
  const { transport, got, ended, until } = await talk(ECHO);
  await transport.send(ping(1));
  await transport.send(ping(2));
  await until(2);
  expect(got.map((one) => one.message)).toMatchObject([{ id: 1, result: { method: "ping" } }, { id: 2 }]);
  await transport.close();
  const end = await ended;
  expect(end.error).toBeUndefined();
  expect(got).toHaveLength(3);
  await expect(transport.send(ping(3))).rejects.toMatchObject({ kind: "closed" });
});

it("childTransport counts and keeps noise, and reads the messages between it", async () => {
  const heard: string[] = [];
  const { transport, got, ended } = await talk(
    `const say = (bytes) => fs.writeSync(1, bytes);
       say("\\ufeffWelcome to the server!\\n\\r\\n");
       say('{"jsonrpc":"2.0",'); say('"method":"one"}\\r\\n');
       say(Buffer.from([0xff, 0xfe, 10])); say("\\u001b[32mready\\u001b[0m\\n{}\\n[1]\\n");
       say('{"jsonrpc":"2.0","method":"two"}\\n' + "x".repeat(2000) + "\\n");
       say('{"jsonrpc":"2.0","id":1,"resu');`,
    { onNoise: (line) => heard.push(line), limits: { messageBytes: 1000 } },
  );
  await ended;
  expect(got).toMatchObject([{ message: { method: "one" } }, { message: { method: "two" } }, { kind: "end" }]);
  expect(transport.noise.count).toBe(7);
  expect(transport.noise.last).toEqual(heard);
  expect(heard).toEqual([
    "Welcome to the server!",
    "(Parse error: Invalid UTF-8)",
    "\u001b[32mready\u001b[0m",
    "{}",
    "[1]",
    "(Message longer than 1000 bytes (limits.messageBytes))",
    '{"jsonrpc":"2.0","id":1,"resu',
  ]);
});

it("childTransport keeps only the last lines of noise", async () => {
  const { transport, ended } = await talk('for (let i = 0; i < 1000; i++) console.log("noise", i)');
  await ended;
  expect(transport.noise.count).toBe(1000);
  expect(transport.noise.last).toHaveLength(20);
  expect(transport.noise.last.at(-1)).toBe("noise 999");
});

it.each([
  ["text", "noise"],
  ["invalid UTF-8", "\\xff"],
  ["objects", "{}"],
])("childTransport ends a server that has sent a message and then floods its stdout: %s", async (_name, line) => {
  const { got, ended, transport } = await talk(`
      console.log('{"jsonrpc":"2.0","method":"first"}');
      const lines = Buffer.from("${line}\\n".repeat(5000), "latin1");
      const write = () => process.stdout.write(lines, write);
      write();`);
  const { error } = await ended;
  expect(got[0]?.message).toMatchObject({ method: "first" });
  expect(error).toMatchObject({ kind: "protocol" });
  expect(error?.message).toContain("wrote 10000 lines to its stdout, none of them a message");
  // The lines that were read at once with the last one still count.
  expect(transport.noise.count).toBeLessThan(10_064);
});

it("childTransport reads noise that has messages between it", async () => {
  const { ended, transport } = await talk(`
      for (let i = 0; i < 3; i++) console.log("noise\\n".repeat(6000) + '{"jsonrpc":"2.0","method":"m"}');`);
  expect((await ended).error?.message).toContain("exited with code 0");
  expect(transport.noise.count).toBe(18_000);
});

it.runIf(IS_LONG)(
  "childTransport stops reading a server that asks and does not read the answers, until it reads",
  async () => {
    const text = "x".repeat(16 * 1024);
    let asked = 0;
    const transport = childTransport({
      command: process.execPath,
      args: [
        "-e",
        `const ask = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"ping"}\\n'.repeat(1000));
         const write = () => process.stdout.write(ask, write);
         write();
         process.once("SIGUSR2", () => process.stdin.resume());`,
      ],
      stdinGraceMs: 200,
      termGraceMs: 200,
    });
    open.push(transport);
    await transport.start((inbound) => {
      if (messageOf(inbound) === undefined) return;
      asked += 1;
      void transport.send({ jsonrpc: "2.0", id: 1, result: { text } });
    });
    const settled = async (): Promise<number> => {
      for (let quiet = 0, before = -1; quiet < 5; before = asked) {
        quiet = asked === before && asked > 0 ? quiet + 1 : 0;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      return asked;
    };
    const first = await settled();
    // 8 MiB, and the answers to the lines that were read before the next look.
    expect(first * text.length).toBeLessThan(9.5 * 1024 * 1024);
    process.kill(transport.child?.pid ?? 0, "SIGUSR2");
    while (asked < 4 * first) await new Promise(setImmediate);
  },
);

it("childTransport reads on from a server that is sent a long request and answers others first", async () => {
  const { transport, until } = await talk(`
      const answer = '{"jsonrpc":"2.0","id":1,"result":{"text":"' + "x".repeat(1000) + '"}}\\n';
      for (let count = 0; count < 1000; count++) fs.writeSync(1, answer);
      process.stdin.resume();`);
  const params = { text: "x".repeat(3 * 1024 * 1024) };
  const sent = Array.from({ length: 4 }, (_, id) => transport.send({ jsonrpc: "2.0", id, method: "long", params }));
  await until(1000);
  await Promise.all(sent);
});

it("childTransport reports the end once, after all output, with the exit code and the end of stderr", async () => {
  const { got, ended, transport } = await talk(`
      let text = ""; for (let id = 0; id < 20000; id++) text += '{"jsonrpc":"2.0","id":' + id + ',"result":{}}\\n';
      process.stdout.write(text, () => { console.error("no such database"); process.exit(3); });`);
  const { error } = await ended;
  expect(got).toHaveLength(20_001);
  expect(got[19_999]?.message).toMatchObject({ id: 19_999 });
  expect(error).toMatchObject({ kind: "closed" });
  expect(error?.message).toBe(`${process.execPath} exited with code 3; the end of its stderr:\nno such database`);
  expect(transport.stderrTail()).toBe("no such database\n");
  await transport.close();
  expect(got).toHaveLength(20_001);
});

it.runIf(IS_LONG)("childTransport reports the end while descendants still live, and ends those too", async () => {
  const unresponsive = `process.on("SIGTERM", () => {}); console.error("up"); setInterval(() => {}, 1_000);`;
  const script = `
      const { spawn } = require("node:child_process");
      const child = spawn(process.execPath, ["-e", ${JSON.stringify(unresponsive)}], { stdio: ["ignore", "inherit", "pipe"] });
      child.stderr.once("data", () => {
        console.log(JSON.stringify({ jsonrpc: "2.0", method: "pid", params: { pid: child.pid } }));
        setTimeout(() => process.kill(process.pid, "SIGKILL"), 50);
      });`;
  const { got, ended } = await talk(script, { termGraceMs: 60_000 });
  expect(await ended).toMatchObject({ error: { kind: "closed" } });
  const said = got[0]?.message as { params?: { pid?: number } } | undefined;
  // It was not awaited; that it ends too is checked after each test.
  expect(() => process.kill(said?.params?.pid ?? 0, 0)).not.toThrow();
});

it("childTransport rejects pending messages when the server exits before reading them", async () => {
  const { transport, ended } = await talk("setInterval(() => {}, 1e6)");
  const text = "x".repeat(1_000_000);
  const sends = Array.from({ length: 10 }, (_, id) =>
    transport.send({ jsonrpc: "2.0", id, method: "big", params: { text } }),
  );
  const outcome = Promise.allSettled(sends);
  process.kill(transport.child?.pid ?? 0, "SIGKILL");
  expect((await outcome).map((one) => one.status)).toEqual(sends.map(() => "rejected"));
  expect((await ended).error?.message).toMatch(/was killed by SIGKILL; it wrote nothing on stderr$/);
  await expect(transport.send(ping(1))).rejects.toMatchObject({
    kind: "closed",
    message: expect.stringContaining("SIGKILL"),
  });
});

it.each(sampleOf(1, [["stdout"], ["stdin"]]))(
  "childTransport ends a server that closes its %s and keeps running",
  async (pipe) => {
    const { transport, ended } = await talk(
      `fs.closeSync(${pipe === "stdin" ? 0 : 1}); setInterval(() => {}, 1e6); console.error("here")`,
    );
    if (pipe === "stdin") {
      // The first may still fit into the pipe.
      for (let id = 0; ; id += 1) {
        const sent = await transport.send(ping(id)).catch((error: unknown) => error);
        if (sent !== undefined) break;
        await new Promise(setImmediate);
      }
    }
    expect((await ended).error?.message).toContain(`after it closed its ${pipe}: here`);
  },
);

it("childTransport says why a server exited before its first message, with the end of a long line", async () => {
  const exits = async (line: string): Promise<string> => {
    const { ended } = await talk(`console.error(${JSON.stringify(line)}); process.exit(1);`);
    return (await ended).error?.message ?? "";
  };
  const how = `${process.execPath} exited with code 1: `;
  const line = `TypeError: ${"wrong ".repeat(60)}; pass this instead`;
  expect(await exits(line)).toBe(`${how}${line}`);
  expect(await exits("note\ncatenary: a.js exports no server; write one of these:\n  missing")).toMatch(
    /exited with code 1: catenary: a\.js exports no server; write one of these:; the end of its stderr:\n/,
  );
  const long = `TypeError: ${"wrong ".repeat(100)}; pass this instead`;
  const [reason] = (await exits(long)).split("; the end of its stderr:");
  expect(reason).toMatch(/: TypeError: (?:wrong )+.* \.\.\. .*; pass this instead$/);
});

it("childTransport explains why a server could not be started", async () => {
  const transport = childTransport({ command: "no-such-server" });
  await expect(transport.start(() => {})).rejects.toMatchObject({
    kind: "spawn",
    message: expect.stringContaining("install it, or give its full path"),
  });
  await expect(transport.send(ping(1))).rejects.toMatchObject({ kind: "closed" });
  await transport.close();
  expect(transport.child).toBeUndefined();
});

it("childTransport can be closed while it starts", async () => {
  const transport = childTransport({ command: "cat" });
  open.push(transport);
  const started = transport.start(() => {});
  const closed = transport.close();
  await expect(started).rejects.toMatchObject({ kind: "closed" });
  await closed;
  expect(await transport.child?.exited).toEqual({ code: 0, signal: null });
});

const failure = async (stderr: string): Promise<ConnectionError> => {
  const script = `process.stderr.write(${JSON.stringify(stderr)}); process.exitCode = 1`;
  const env = { PASSWORD: "open sesame", MODE: "dev" };
  const transport = childTransport({ command: process.execPath, args: ["-e", script], env });
  const error = await new Promise<unknown>((resolve) => {
    void transport.start((inbound) => inbound.kind === "end" && resolve(inbound.error));
  });
  return error as ConnectionError;
};

it.each([
  [
    "npm error code E404\nnpm error 404 Not Found - GET https://registry/x\nnpm error 404\nnpm error A complete log of this run can be found in: /x",
    "npm error 404 Not Found - GET https://registry/x",
  ],
  ["BRAVE_API_KEY environment variable is required\n", "BRAVE_API_KEY environment variable is required"],
  ["x.js:1\nthrow new Error('no')\n\nError: no key\n    at x.js:1:7\n\nNode.js v20.1.0\n", "Error: no key"],
  ["bad key sk-live-0123456789abcdefghij", "bad key ..."],
  ["Invalid password 'open sesame' in mode dev", "Invalid password '...' in mode dev"],
  ["", ""],
])("a program that does not start tells callers why: %j", async (stderr, reason) => {
  const error = await failure(stderr);
  const own = error.message.slice(0, error.message.length - (error.diagnostics ?? "").length);
  expect(own).toBe(`${process.execPath} exited with code 1${reason === "" ? "" : `: ${reason}`}`);
});
