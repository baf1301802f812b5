// Notices that the next call gets, whichever tool it calls: lost state, and output printed in between. The guest is a
// few lines of Node that run the given code, so that each test decides what the guest does.

import { afterEach, beforeEach, expect, it } from "vitest";
import { IS_LONG, sampleOf } from "../../support/thoroughness.ts";
import { createLiveServer } from "../../../src/live/server.ts";
import type { Runtime } from "../../../src/live/runtime.ts";
import type { GuestTool } from "../../../src/live/tool.ts";
import { LiveFixture, textOf } from "./live-fixture.ts";

const GUEST = `
const channel = new (require("node:net").Socket)({ fd: 3 });
const send = (message) => {
  const text = JSON.stringify(message);
  channel.write(Buffer.byteLength(text) + "\\n" + text);
};
let rest = "";
channel.setEncoding("utf8").on("end", () => process.exit()).on("data", (text) => {
  rest += text;
  for (let at; (at = rest.indexOf("\\n")) >= 0 && rest.length - at - 1 >= Number(rest.slice(0, at)); ) {
    const end = at + 1 + Number(rest.slice(0, at));
    const { id, code } = JSON.parse(rest.slice(at + 1, end));
    rest = rest.slice(end);
    const answer = (result) => send({ id, result });
    const refuse = (error) => send({ id, error });
    new Function("answer", "refuse", "channel", code)(answer, refuse, channel);
  }
});
send({ event: "ready", version: "none" });`;

const runtime: Runtime = {
  language: "none",
  stopSteps: [],
  start: async () => ({ command: process.execPath, args: ["-e", GUEST] }),
};

const tool = (name: string, more: Partial<GuestTool> = {}): GuestTool => ({
  name,
  title: name,
  description: name,
  arguments: { code: { type: "string", required: true, description: "The code that the guest runs" } },
  ...more,
});

const OK = 'answer({ status: "ok", values: ["1"], warnings: [], timing: { realMs: 1 }, defined: [{ name: "mine" }] })';

let fixture: LiveFixture;
beforeEach(async () => {
  const texts = { title: "None", instructions: "" };
  const tools = [tool("look"), tool("glance", { whileBusy: true })];
  fixture = await LiveFixture.open(
    createLiveServer({ runtime, ...texts, evaluate: tool("evaluate-js"), tools }, {}),
    "js",
  );
});
afterEach(() => fixture.close());

/** Makes the process exit while no call runs. */
async function lose(): Promise<void> {
  await fixture.evaluate(`${OK}; setImmediate(() => process.exit(3))`);
  await expect.poll(() => fixture.call("list-sessions")).toContain("main: stopped");
}

const NOTICE = "[Notice] The state of session main was lost: its process ended by itself (exit code 3)";

it("lost state is reported by an evaluation that is refused", async () => {
  await lose();
  const refused = await fixture.answer('refuse("Package rooms not found")');
  expect(refused.isError).toBe(true);
  expect(textOf(refused)).toBe(`${NOTICE}; lost definitions: mine\nPackage rooms not found`);
});

it("lost state names what other tools than evaluate have defined", async () => {
  await fixture.call("look", { code: 'answer({ text: "", defined: [{ type: "class", name: "Account" }] })' });
  await lose();
  expect(textOf(await fixture.answer('refuse("no")'))).toContain("lost definitions: Account, mine");
});

it.runIf(IS_LONG)("lost state is reported by another tool that is refused", async () => {
  await lose();
  expect(await fixture.call("look", { code: 'refuse("not today")' })).toBe(
    `${NOTICE}; lost definitions: mine\nnot today`,
  );
});

it.runIf(IS_LONG)("lost state is reported by one evaluation, even if other tools reported it before", async () => {
  await lose();
  expect(await fixture.call("look", { code: 'answer({ text: "looked" })' })).toContain(NOTICE);
  expect((await fixture.evaluate(OK)).notice).toContain("ended by itself (exit code 3)");
  expect((await fixture.evaluate(OK)).notice).toBeUndefined();
});

it("lost state is reported by a tool that has damaged the process", async () => {
  await fixture.evaluate(OK);
  expect(await fixture.call("look", { code: 'answer({ text: "looked", damaged: true })' })).toBe(
    "[Notice] The state of session main was lost: its memory was damaged, so its process was ended; " +
      "lost definitions: mine\nlooked",
  );
});

it("lost state names the memory limit with which the process was started", async () => {
  await fixture.evaluate(OK);
  await fixture.call("configure-limits", { memory: 100 });
  const { notice } = await fixture.evaluate('process.stderr.write("heap out of memory", () => process.exit(134))');
  expect(notice).toContain("its process ran out of memory (limit 512 MB; ");
});

it.each([
  [
    "V8",
    "\n<--- Last few GCs --->\n\n[1:0x1] 4 ms: Mark-Compact\n\nFATAL ERROR: x - JavaScript heap out of memory\n 1: 0xb",
  ],
  [
    "V8 without collections",
    "FATAL ERROR: x - JavaScript heap out of memory\n----- Native stack trace -----\n\n 1: 0xb",
  ],
  ["SBCL", "Heap exhausted during garbage collection: 0 bytes available.\n Gen layout\nfatal error\n   0: fp=0x7f"],
])("lost state leaves out what %s prints when it has run out of memory", async (_runtime, report) => {
  const printed = JSON.stringify(`mine\n${report}`);
  const text = await fixture.call("evaluate-js", {
    code: `process.stderr.write(${printed}, () => process.exit(134))`,
  });
  expect(text).toMatch(/^\[Notice\] .*its process ran out of memory[^\n]*\n\[stderr\] mine\n\[LOST\] [^\n]*$/);
});

it.each([
  ["reset-session", "reset"],
  ["close-session", "closed"],
])("lost state is reported to the call that %s has stopped", async (tool, done) => {
  await fixture.evaluate(OK);
  const { ended } = await begun("setTimeout(() => undefined, 60_000)");
  await fixture.call(tool);
  expect(await ended).toMatchObject({
    status: "lost",
    notice: `The state of session main was lost: it was ${done} by another call; lost definitions: mine`,
  });
  expect((await fixture.evaluate(OK)).notice).toBeUndefined();
});

it("lost state has the reason out of memory, even between two calls", async () => {
  await fixture.evaluate(
    `${OK}; setImmediate(() => process.stderr.write("FATAL ERROR: heap out of memory", () => process.exit(134)))`,
  );
  await expect.poll(() => fixture.call("list-sessions")).toContain("main: stopped");
  const next = await fixture.evaluate(OK);
  expect(next.notice).toContain("its process ran out of memory (limit 512 MB; ");
  expect(next.background).toBeUndefined();
});

it.runIf(IS_LONG)("lost state does not fail a tool that runs beside it: the next process answers", async () => {
  const { ended } = await begun("setTimeout(() => undefined, 60_000)");
  const glance = 'globalThis.busy ? process.exit(4) : answer({ text: "nothing runs" })';
  expect(await fixture.call("glance", { code: glance })).toBe("nothing runs");
  expect((await ended).status).toBe("lost");
});

async function begun(code: string): ReturnType<LiveFixture["begun"]> {
  return new Promise((resolve, reject) => {
    const ended = fixture.evaluate(
      `globalThis.busy = true; process.stdout.write("begun"); ${code}`,
      {},
      {
        onProgress: () => resolve({ ended }),
      },
    );
    ended.catch(reject);
  });
}

const PRINT = 'process.stdout.write("late\\n", () => answer({ text: "looked" }))';

it("output between two evaluations is kept for the next evaluation, even if other tools are called first", async () => {
  await fixture.evaluate(OK);
  expect(await fixture.call("look", { code: PRINT })).toBe("looked");
  expect(await fixture.call("look", { code: 'answer({ text: "looked" })' })).toBe("looked");
  expect((await fixture.evaluate(OK)).background).toBe("late");
  expect((await fixture.evaluate(OK)).background).toBeUndefined();
});

it.runIf(IS_LONG)("output between two evaluations is dropped when the session is reset", async () => {
  await fixture.evaluate(OK);
  await fixture.call("look", { code: PRINT });
  await fixture.call("reset-session");
  expect((await fixture.evaluate(OK)).background).toBeUndefined();
});

it.runIf(IS_LONG)("output between two evaluations of a process that is being reset is dropped", async () => {
  await fixture.evaluate(
    `channel.removeAllListeners("end").on("end", () => process.stdout.write("late", () => process.exit())); ${OK}`,
  );
  await fixture.call("reset-session");
  expect((await fixture.evaluate(OK)).background).toBeUndefined();
});

it("output between two evaluations is reported by an evaluation that is refused", async () => {
  await fixture.evaluate(OK);
  await fixture.call("look", { code: PRINT });
  expect(textOf(await fixture.answer('refuse("not today")'))).toBe("[background] late\nnot today");
});

it.each(["answer([1])", 'answer({ status: "ok", values: { length: 0 } })', "answer(1)"])(
  "code that writes to the channel cannot send an invalid evaluation: %s",
  async (code) => {
    const answer = await fixture.answer(code);
    expect(answer.isError).toBe(true);
    expect(answer.structuredContent).toBeUndefined();
    expect(textOf(answer)).toContain("sent an invalid evaluation result");
    expect((await fixture.evaluate(OK)).status).toBe("ok");
  },
);

it.each(
  sampleOf(2, [
    ['{"event":"background","text":""}', { status: "timeout", step: "restart", state: "lost" }],
    ['{"event":"ready"}', { status: "lost", notice: expect.stringContaining("belong to no request") as string }],
    ['{"id":99,"output":""}', { status: "lost" }],
    ['{"what":1}', { status: "lost" }],
  ]),
)(
  "code that writes to the channel is stopped if it sends %s endlessly, and others are served meanwhile",
  async (message, outcome) => {
    const flood = `const text = ${JSON.stringify(`${message.length}\n${message}`)}.repeat(1000);
      const on = () => { while (channel.write(text)); channel.once("drain", on); }; on()`;
    const flooded = fixture.evaluate(flood, { timeout: 1 });
    expect((await fixture.evaluate(OK, { session: "other" })).status).toBe("ok");
    expect(await flooded).toMatchObject(outcome);
  },
);

it("code that writes to the channel may send a message with very many values, which is ignored", async () => {
  const many = 'const text = `{"a":[${"{},".repeat(300000)}0]}`; channel.write(`${text.length}\\n${text}`);';
  expect(await fixture.evaluate(`${many} ${OK}`)).toMatchObject({ status: "ok" });
});

it("closes a session whose process never gets ready", async () => {
  const start = async (): ReturnType<Runtime["start"]> => ({
    command: process.execPath,
    args: ["-e", "setInterval(Date, 1000)"],
  });
  const silent = createLiveServer(
    {
      runtime: { ...runtime, start },
      title: "None",
      instructions: "",
      evaluate: tool("evaluate-js"),
      tools: [],
    },
    {},
  );
  const other = await LiveFixture.open(silent, "js");
  const begun = expect(other.answer("1")).rejects.toThrow(/closed/);
  await expect.poll(() => other.call("list-sessions")).toContain("main: starting");
  await other.close();
  await begun;
});
