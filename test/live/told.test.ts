// What a caller must be told, whichever tool is called next: what was lost, and what was printed in between. The guest is
// a few lines of Node that run what they are given and say what that says, so that a test decides what a guest does.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { liveServer } from "../../src/live/server.ts";
import type { Runtime } from "../../src/live/runtime.ts";
import type { GuestTool } from "../../src/live/tool.ts";
import { Stage, textOf } from "./stage.ts";

const GUEST = `
const wire = new (require("node:net").Socket)({ fd: 3 });
const send = (message) => {
  const text = JSON.stringify(message);
  wire.write(Buffer.byteLength(text) + "\\n" + text);
};
let rest = "";
wire.setEncoding("utf8").on("end", () => process.exit()).on("data", (text) => {
  rest += text;
  for (let at; (at = rest.indexOf("\\n")) >= 0 && rest.length - at - 1 >= Number(rest.slice(0, at)); ) {
    const end = at + 1 + Number(rest.slice(0, at));
    const { id, code } = JSON.parse(rest.slice(at + 1, end));
    rest = rest.slice(end);
    const answer = (result) => send({ id, result });
    const refuse = (error) => send({ id, error });
    new Function("answer", "refuse", "wire", code)(answer, refuse, wire);
  }
});
send({ event: "ready", version: "none" });`;

const runtime: Runtime = {
  language: "none",
  ladder: [],
  start: async () => ({ command: process.execPath, args: ["-e", GUEST] }),
  encode: (request) => JSON.stringify(request),
};

const tool = (name: string, more: Partial<GuestTool> = {}): GuestTool => ({
  name,
  title: name,
  description: name,
  arguments: { code: { type: "string", required: true, description: "What the guest does" } },
  ...more,
});

const OK = 'answer({ status: "ok", values: ["1"], warnings: [], timing: { realMs: 1 }, defined: [{ name: "mine" }] })';

let stage: Stage;
beforeEach(async () => {
  const words = { title: "None", instructions: "", guide: "" };
  const tools = [tool("look"), tool("glance", { atOnce: true })];
  stage = await Stage.open(liveServer({ runtime, ...words, evaluate: tool("evaluate-js"), tools }, {}), "js");
});
afterEach(() => stage.close());

/** Its process ends while nobody looks. */
async function lose(): Promise<void> {
  await stage.evaluate(`${OK}; setImmediate(() => process.exit(3))`);
  await expect.poll(() => stage.call("list-sessions")).toContain("main: asleep");
}

describe("what was lost", () => {
  const NOTICE = "[Notice] The state of the session main is lost: its process ended by itself (exit code 3)";

  it("is told with an evaluation that is refused", async () => {
    await lose();
    const refused = await stage.answer('refuse("Package rooms not found")');
    expect(refused.isError).toBe(true);
    expect(textOf(refused)).toBe(`${NOTICE}; defined were: mine\nPackage rooms not found`);
  });

  it("is told with another tool that is refused", async () => {
    await lose();
    expect(await stage.call("look", { code: 'refuse("not today")' })).toBe(`${NOTICE}; defined were: mine\nnot today`);
  });

  it("is told by an evaluation, once, also where others have told it before", async () => {
    await lose();
    expect(await stage.call("look", { code: 'answer({ text: "looked" })' })).toContain(NOTICE);
    expect((await stage.evaluate(OK)).notice).toContain("ended by itself (exit code 3)");
    expect((await stage.evaluate(OK)).notice).toBeUndefined();
  });

  it("is told by a tool that has damaged the process", async () => {
    await stage.evaluate(OK);
    expect(await stage.call("look", { code: 'answer({ text: "looked", damaged: true })' })).toBe(
      "[Notice] The state of the session main is lost: its memory was damaged, so its process was ended; " +
        "defined were: mine\nlooked",
    );
  });

  it("was full at the memory that the process was started with", async () => {
    await stage.evaluate(OK);
    await stage.call("configure-limits", { memory: 100 });
    const { notice } = await stage.evaluate('process.stderr.write("heap out of memory", () => process.exit(134))');
    expect(notice).toContain("its memory was full (it may take 512 MB; ");
  });

  it.each([
    ["reset-session", "reset"],
    ["close-session", "closed"],
  ])("is told to whom %s has stopped, with who it was", async (tool, done) => {
    await stage.evaluate(OK);
    const { ended } = await begun("setTimeout(() => undefined, 60_000)");
    await stage.call(tool);
    expect(await ended).toMatchObject({
      status: "lost",
      notice: `The state of the session main is lost: it was ${done} by another call; defined were: mine`,
    });
    expect((await stage.evaluate(OK)).notice).toBeUndefined();
  });

  it("is a full memory, also where nobody looked", async () => {
    await stage.evaluate(
      `${OK}; setImmediate(() => process.stderr.write("heap out of memory", () => process.exit(134)))`,
    );
    await expect.poll(() => stage.call("list-sessions")).toContain("main: asleep");
    expect((await stage.evaluate(OK)).notice).toContain("its memory was full (it may take 512 MB; ");
  });

  it("is no answer of a tool that is asked beside it: the next process answers", async () => {
    const { ended } = await begun("setTimeout(() => undefined, 60_000)");
    const glance = 'globalThis.busy ? process.exit(4) : answer({ text: "nothing runs" })';
    expect(await stage.call("glance", { code: glance })).toBe("nothing runs");
    expect((await ended).status).toBe("lost");
  });
});

async function begun(code: string): ReturnType<Stage["begun"]> {
  return new Promise((resolve, reject) => {
    const ended = stage.evaluate(
      `globalThis.busy = true; process.stdout.write("begun"); ${code}`,
      {},
      {
        onProgress: () => resolve({ ended }),
      },
    );
    ended.catch(reject);
  });
}

describe("what was printed in between", () => {
  const PRINT = 'process.stdout.write("late\\n", () => answer({ text: "looked" }))';

  it("is kept for the next evaluation, whatever other tools are called before", async () => {
    await stage.evaluate(OK);
    expect(await stage.call("look", { code: PRINT })).toBe("looked");
    expect(await stage.call("look", { code: 'answer({ text: "looked" })' })).toBe("looked");
    expect((await stage.evaluate(OK)).background).toBe("late\n");
    expect((await stage.evaluate(OK)).background).toBeUndefined();
  });

  it("is gone with its process, where that was wanted", async () => {
    await stage.evaluate(OK);
    await stage.call("look", { code: PRINT });
    await stage.call("reset-session");
    expect((await stage.evaluate(OK)).background).toBeUndefined();
  });

  it("by a process that was to end is of no use to the next", async () => {
    await stage.evaluate(
      `wire.removeAllListeners("end").on("end", () => process.stdout.write("late", () => process.exit())); ${OK}`,
    );
    await stage.call("reset-session");
    expect((await stage.evaluate(OK)).background).toBeUndefined();
  });

  it("is told with an evaluation that is refused", async () => {
    await stage.evaluate(OK);
    await stage.call("look", { code: PRINT });
    expect(textOf(await stage.answer('refuse("not today")'))).toBe("[background] late\nnot today");
  });
});

describe("what runs in a guest and speaks in its name", () => {
  it.each(["answer([1])", 'answer({ status: "ok", values: { length: 0 } })', "answer(1)"])(
    "gives no answer that is none: %s",
    async (code) => {
      const answer = await stage.answer(code);
      expect(answer.isError).toBe(true);
      expect(answer.structuredContent).toBeUndefined();
      expect(textOf(answer)).toContain("is no answer to an evaluation");
      expect((await stage.evaluate(OK)).status).toBe("ok");
    },
  );

  it.each(['{"event":"ready"}', '{"event":"background","text":""}', '{"id":1,"output":""}', '{"what":1}'])(
    "is ended where it says %s without end",
    async (said) => {
      const flood = `const text = ${JSON.stringify(`${said.length}\n${said}`)}.repeat(1000);
        const on = () => { while (wire.write(text)); wire.once("drain", on); }; on()`;
      const { status, notice } = await stage.evaluate(flood);
      expect(status).toBe("lost");
      expect(notice).toContain("it says too much that nobody asked for");
    },
  );

  it("is ended where one message has very many values", async () => {
    const { notice } = await stage.evaluate(
      'const text = `{"a":[${"{},".repeat(300000)}0]}`; wire.write(`${text.length}\\n${text}`)',
    );
    expect(notice).toContain("a message has too many values");
  });
});

it("is not waited for, where it never gets ready", async () => {
  const start = async (): ReturnType<Runtime["start"]> => ({
    command: process.execPath,
    args: ["-e", "setInterval(Date, 1000)"],
  });
  const silent = liveServer(
    {
      runtime: { ...runtime, start },
      title: "None",
      instructions: "",
      guide: "",
      evaluate: tool("evaluate-js"),
      tools: [],
    },
    {},
  );
  const other = await Stage.open(silent, "js");
  const begun = expect(other.answer("1")).rejects.toThrow(/closed/);
  await expect.poll(() => other.call("list-sessions")).toContain("main: starting");
  await other.close();
  await begun;
});
