// One evaluation with a session of its own, against a guest that is a few lines of Node: what it prints is heard as it
// comes, an abort interrupts it, and its process is gone afterwards in any case.

import { describe, expect, it } from "vitest";
import { evaluateOnce } from "./evaluate-once.ts";
import type { GuestCommand, Runtime } from "./runtime.ts";

/** Answers `eval`: code is run as it is, with `done` to answer; an interrupt is answered for it. */
const GUEST = `
const { Socket } = require("node:net");
const wire = new Socket({ fd: 3 });
const send = (message) => {
  const text = JSON.stringify(message);
  wire.write(Buffer.byteLength(text) + "\\n" + text);
};
let rest = "", running = 0;
wire.setEncoding("utf8").on("end", () => process.exit()).on("data", (text) => {
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
    else new Function("done", "print", code)(done, (output, stream) => send({ id, output, stream }));
  }
});
send({ event: "ready", version: "none" });`;

class Stage {
  readonly heard: string[] = [];
  readonly abort = new AbortController();
  readonly runtime: Runtime = {
    language: "none",
    ladder: ["interrupt"],
    start: async () => ({ command: process.execPath, args: ["-e", GUEST] }),
    encode: (request) => JSON.stringify(request),
  };

  run(code: string): ReturnType<typeof evaluateOnce> {
    return evaluateOnce(this.runtime, code, {
      signal: this.abort.signal,
      hear: (text, stream) => {
        this.heard.push(`${stream}: ${text}`);
        if (text === "stop me") this.abort.abort();
      },
    });
  }
}

describe("one evaluation", () => {
  it("is heard as it prints, whole, and its process is gone afterwards", async () => {
    const stage = new Stage();
    const code = `print("one", "stdout"); print("two", "stderr"); print(String(process.pid), "stdout"); done("ok", ["6"])`;
    const evaluation = await stage.run(code);
    expect(evaluation).toMatchObject({ status: "ok", values: ["6"], state: "kept", stderr: "two" });
    const [, , third = ""] = stage.heard;
    expect(stage.heard).toEqual(["stdout: one", "stderr: two", third]);
    expect(() => process.kill(Number(third.replace("stdout: ", "")), 0)).toThrow("ESRCH");
  });

  it("is interrupted by its signal", async () => {
    const stage = new Stage();
    const evaluation = await stage.run('print("stop me", "stdout")');
    expect(evaluation).toMatchObject({ status: "interrupted", step: "interrupt", stdout: "stop me" });
  });

  it("does not begin where it is aborted while it starts", async () => {
    const stage = new Stage();
    const running = stage.run('print("begun", "stdout"); done("ok")');
    stage.abort.abort(new Error("too late"));
    await expect(running).rejects.toThrow("too late");
    expect(stage.heard).toEqual([]);
  });

  it("whose code ends its process says so, and speaks of no session", async () => {
    const stage = new Stage();
    const { status, notice } = await stage.run("process.exit(3)");
    expect({ status, notice }).toEqual({ status: "lost", notice: "The code ended its process (exit code 3)" });
  });

  it("tells what is started for it", async () => {
    const { runtime, abort } = new Stage();
    const started: string[] = [];
    const onStart = ({ command }: GuestCommand): unknown => started.push(command);
    expect(await evaluateOnce(runtime, "done('ok')", { signal: abort.signal, onStart })).toMatchObject({
      status: "ok",
    });
    expect(started).toEqual([process.execPath]);
  });

  it("tells nothing of what its runtime says of itself, whether or not it is told what is started", async () => {
    const { runtime, abort } = new Stage();
    const noisy: Runtime = { ...runtime, noise: /^INFO: .*\n/gm };
    const code = `print("INFO: a page\\n", "stderr"); print("INFO: mine\\n", "stdout");
      process.stderr.write("INFO: a page\\nmine\\n", () => done("ok"))`;
    for (const more of [{}, { onStart: () => undefined }]) {
      const heard: string[] = [];
      const hear = (text: string): unknown => heard.push(text);
      const { stdout, stderr } = await evaluateOnce(noisy, code, { signal: abort.signal, hear, ...more });
      expect({ stdout, stderr }).toEqual({ stdout: "INFO: mine\n", stderr: "mine\n" });
      expect(heard.toSorted()).toEqual(["INFO: mine\n", "mine\n"]);
    }
  });

  it("that is refused says why", async () => {
    const stage = new Stage();
    await expect(stage.run("refuse")).rejects.toThrow("not today");
  });
});
