// evaluateOnce with a guest of a few lines of Node: output is reported as it is printed, an abort interrupts it, and
// the process is gone afterwards in any case. Also how long an interrupt is waited for, and runs that can call tools.

import { afterEach, describe, expect, it, vi } from "vitest";
import { IS_LONG, sampleOf } from "../../test/support/thoroughness.ts";
import { deferred } from "../core/async.ts";
import { stopRequest, type Guest } from "./guest.ts";
import { evaluateOnce } from "./evaluate-once.ts";
import { nextReadingMs } from "./sessions.ts";
import { DEFAULT_LIMITS, type GuestCommand, type Runtime } from "./runtime.ts";
import { Session } from "./session.ts";

/** Runs the code of `eval` with a function `done` that sends the result; an interrupt sends the result for it. */
const GUEST = `
const { Socket } = require("node:net");
const channel = new Socket({ fd: 3 });
const send = (message) => {
  const text = JSON.stringify(message);
  channel.write(Buffer.byteLength(text) + "\\n" + text);
};
let rest = "", running = 0;
channel.setEncoding("utf8").on("end", () => process.exit()).on("data", (text) => {
  rest += text;
  for (let at; (at = rest.indexOf("\\n")) >= 0 && rest.length - at - 1 >= Number(rest.slice(0, at)); ) {
    const size = Number(rest.slice(0, at));
    const { id, op, code } = JSON.parse(rest.slice(at + 1, at + 1 + size));
    rest = rest.slice(at + 1 + size);
    const done = (status, values = []) =>
      send({ id: running, result: { status, values, warnings: [], timing: { realMs: 1 }, defined: [] } });
    if (op === "interrupt") { done("interrupted"); send({ id, result: { busy: true } }); continue; }
    running = id;
    if (code === "refuse") send({ id, error: "not today" });
    else new Function("done", "print", "channel", code)(done, (output, stream) => send({ id, output, stream }), channel);
  }
});
send({ event: "ready", version: "none" });`;

class Fixture {
  readonly output: string[] = [];
  readonly abort = new AbortController();
  readonly runtime: Runtime = {
    language: "none",
    stopSteps: ["interrupt"],
    start: async () => ({ command: process.execPath, args: ["-e", GUEST] }),
  };

  run(code: string): ReturnType<typeof evaluateOnce> {
    return evaluateOnce(this.runtime, code, {
      signal: this.abort.signal,
      onOutput: (text, stream) => {
        this.output.push(`${stream}: ${text}`);
        if (text === "stop me") this.abort.abort();
      },
    });
  }
}

it("evaluateOnce reports all output as it is printed, and ends the process", async () => {
  const fixture = new Fixture();
  const code = `print("one", "stdout"); print("two", "stderr"); print(String(process.pid), "stdout"); done("ok", ["6"])`;
  const evaluation = await fixture.run(code);
  expect(evaluation).toMatchObject({ status: "ok", values: ["6"], state: "kept", stderr: "two" });
  const [, , third = ""] = fixture.output;
  expect(fixture.output).toEqual(["stdout: one", "stderr: two", third]);
  expect(() => process.kill(Number(third.replace("stdout: ", "")), 0)).toThrow("ESRCH");
});

it("evaluateOnce is interrupted by the signal", async () => {
  const fixture = new Fixture();
  const evaluation = await fixture.run('print("stop me", "stdout")');
  expect(evaluation).toMatchObject({ status: "interrupted", step: "interrupt", stdout: "stop me" });
});

it("evaluateOnce does not run the code if it is aborted while the process starts", async () => {
  const fixture = new Fixture();
  const running = fixture.run('print("started", "stdout"); done("ok")');
  fixture.abort.abort(new Error("too late"));
  await expect(running).rejects.toThrow("too late");
  expect(fixture.output).toEqual([]);
});

it.runIf(IS_LONG)("evaluateOnce says that the code ended its process, without mentioning a session", async () => {
  const fixture = new Fixture();
  const { status, notice } = await fixture.run("process.exit(3)");
  expect({ status, notice }).toEqual({ status: "lost", notice: "The code ended its process (exit code 3)" });
});

it("evaluateOnce reports the command that it starts", async () => {
  const { runtime, abort } = new Fixture();
  const started: string[] = [];
  const onStart = ({ command }: GuestCommand): unknown => started.push(command);
  expect(await evaluateOnce(runtime, "done('ok')", { signal: abort.signal, onStart })).toMatchObject({
    status: "ok",
  });
  expect(started).toEqual([process.execPath]);
});

it.runIf(IS_LONG)(
  "evaluateOnce removes messages of the language runtime from the output, with and without onStart",
  async () => {
    const { runtime, abort } = new Fixture();
    const noisy: Runtime = { ...runtime, noise: /^INFO: .*\n/gm };
    const code = `print("INFO: a page\\n", "stderr"); print("INFO: mine\\n", "stdout");
      process.stderr.write("INFO: a page\\nmine\\n", () => done("ok"))`;
    for (const more of [{}, { onStart: () => undefined }]) {
      const output: string[] = [];
      const onOutput = (text: string): unknown => output.push(text);
      const { stdout, stderr } = await evaluateOnce(noisy, code, { signal: abort.signal, onOutput, ...more });
      expect({ stdout, stderr }).toEqual({ stdout: "INFO: mine\n", stderr: "mine\n" });
      expect(output.toSorted()).toEqual(["INFO: mine\n", "mine\n"]);
    }
  },
);

it("evaluateOnce replaces halves of characters, which many clients refuse", async () => {
  const { values } = await new Fixture().run(String.raw`done("ok", ["\ud83d", "\udc00x", "\ud83d\ude00", "\\ud83d"])`);
  expect(values).toEqual(["\ufffd", "\ufffdx", "\u{1f600}", String.raw`\ud83d`]);
});

it.each(sampleOf(2, ["null", "1", "[1]", '"text"', "{", "x".repeat(10_000_000)]))(
  "evaluateOnce loses a guest that sends %.5s",
  async (text) => {
    const code = `const text = ${JSON.stringify(text)}; channel.write(text.length + "\\n" + text)`;
    expect(await new Fixture().run(code)).toMatchObject({
      status: "lost",
      notice: expect.stringMatching(/^Its process ended \(it violated the protocol: /) as string,
    });
  },
);

it.each(["{}", '{"call":1,"target":99}', '{"show":[],"target":99}', '{"id":99,"result":{}}', '{"event":"ready"}'])(
  "evaluateOnce loses a guest that floods its channel with %s, which belongs to no request",
  async (text) => {
    const flood = (count: number): string =>
      `channel.write((${JSON.stringify(text)}.length + "\\n" + ${JSON.stringify(text)}).repeat(${count}))`;
    expect(await new Fixture().run(`${flood(500)}; done("ok", [])`)).toMatchObject({ status: "ok" });
    expect(await new Fixture().run(flood(5_000))).toMatchObject({
      status: "lost",
      notice: expect.stringMatching(/sent more than 1000 messages in a second that belong to no request/) as string,
    });
  },
);

it("evaluateOnce rejects with the reason of a refusal", async () => {
  const fixture = new Fixture();
  await expect(fixture.run("refuse")).rejects.toThrow("not today");
});

describe("an interrupt", () => {
  afterEach(() => void vi.useRealTimers());

  /** A guest that does not answer to controls. */
  const unresponsive = {
    control: () => new Promise(() => undefined),
    close: () => Promise.resolve(),
    child: { findPids: async () => [] },
    hasExited: false,
    ownPids: [],
  } as unknown as Guest;
  const events = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

  it("an interrupt is not given up because the machine has stalled", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const { promise: reply, resolve } = deferred<Record<string, unknown>>();
    const step = stopRequest(unresponsive, ["interrupt"], 1, reply);
    // A late timer fires before the reply is read.
    vi.advanceTimersByTime(10_000);
    await events();
    resolve({});
    expect(await step).toBe("interrupt");
  });

  it("an interrupt is given up after two seconds", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    let step: string | undefined;
    void stopRequest(unresponsive, ["interrupt"], 1, new Promise(() => undefined)).then((one) => (step = one));
    await vi.advanceTimersByTimeAsync(1_999);
    await events();
    expect(step).toBeUndefined();
    await vi.advanceTimersByTimeAsync(1);
    await events();
    expect(step).toBe("restart");
  });
});

it("stops a run at its deadline although the guest does not answer set-tools", async () => {
  const { runtime, abort } = new Fixture();
  const session = new Session({
    name: "main",
    runtime,
    limits: DEFAULT_LIMITS,
    mayStart: async (start) => start(),
    onBusy: () => undefined,
  });
  const peer = { tools: [], receive: () => undefined, end: () => undefined };
  const options = { context: abort, isEvaluation: true, peer };
  expect(await session.run("eval", { code: "" }, { ...options, timeoutMs: 50 })).toMatchObject({ outcome: "timeout" });
  expect(await session.run("eval", { code: "done('ok', ['6'])" }, options)).toMatchObject({ outcome: "answered" });
  await session.close();
});

it("reads the memory of a session sooner the faster it grows towards its limit", () => {
  const at = (ms: number, mb: number, pid = 1) => ({ pid, mb, at: ms });
  expect(nextReadingMs(undefined, at(0, 50), 700)).toBe(100);
  expect(nextReadingMs(at(0, 50), at(100, 50), 700)).toBe(100);
  // 2 GB in a second: 400 MB are left for 200 ms.
  expect(nextReadingMs(at(0, 100), at(100, 300), 700)).toBe(100);
  expect(nextReadingMs(at(100, 300), at(200, 500), 700)).toBe(50);
  expect(nextReadingMs(at(200, 500), at(250, 600), 700)).toBe(25);
  expect(nextReadingMs(at(275, 650), at(285, 699), 700)).toBe(10);
  // The process was replaced.
  expect(nextReadingMs(at(200, 500, 2), at(250, 600), 700)).toBe(100);
});

/** A session whose process starts when `go` is called. */
function slowSession(): { session: Session; go: () => void; asked: Promise<void>; starts: () => number } {
  const { runtime } = new Fixture();
  const gate = deferred();
  const asked = deferred();
  let starts = 0;
  const start: Runtime["start"] = async (limits) => {
    starts += 1;
    asked.resolve();
    await gate.promise;
    return runtime.start(limits);
  };
  const session = new Session({
    name: "main",
    runtime: { ...runtime, start },
    limits: DEFAULT_LIMITS,
    mayStart: async (work) => work(),
    onBusy: () => undefined,
  });
  return { session, go: () => gate.resolve(), asked: asked.promise, starts: () => starts };
}
const run = (session: Session, context: AbortController): ReturnType<Session["run"]> =>
  session.run("eval", { code: "done('ok', ['6'])" }, { context, isEvaluation: true });

it("a session whose process takes long to start ends a call that is cancelled at once, and gives the process to the next call", async () => {
  const { session, go, asked, starts } = slowSession();
  const abort = new AbortController();
  const running = run(session, abort);
  await asked;
  abort.abort(new Error("gone"));
  await expect(running).rejects.toThrow("gone");
  expect(session.state).toBe("starting");
  const next = run(session, new AbortController());
  go();
  expect(await next).toMatchObject({ outcome: "answered", reply: { values: ["6"] } });
  expect(starts()).toBe(1);
  await session.close();
});

it("a session whose process takes long to start ends a call that is interrupted at once", async () => {
  const { session, go, asked } = slowSession();
  const running = run(session, new AbortController());
  await asked;
  expect(await session.interrupt()).toBe(true);
  expect(await running).toMatchObject({ outcome: "interrupted", state: "kept" });
  expect(await session.interrupt()).toBe(false);
  go();
  await session.close();
});

it("a session whose process takes long to start ends its calls at once when it is closed, and leaves no process", async () => {
  const { session, go, asked } = slowSession();
  const running = [run(session, new AbortController()), run(session, new AbortController())];
  await asked;
  const closed = session.close();
  for (const one of running) await expect(one).rejects.toMatchObject({ kind: "closed", mayHaveRun: false });
  go();
  await closed;
  expect([session.pid, session.state]).toEqual([undefined, "stopped"]);
});
