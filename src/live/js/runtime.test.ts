// The command of a JavaScript session, and when it is refused.

import { expect, it } from "vitest";
import { ConnectionError } from "../../core/errors.ts";
import { DEFAULT_LIMITS } from "../runtime.ts";
import { jsRuntime } from "./index.ts";

const major = Number.parseInt(process.versions.node, 10);

it("jsRuntime runs the guest with the Node of this process and the memory limit", async () => {
  const { command, args, env, cwd } = await jsRuntime({}).start({ ...DEFAULT_LIMITS, memoryMb: 77 });
  expect(command).toBe(process.execPath);
  expect(args).toContain("--max-old-space-size=77");
  expect(args.slice(-2)).toEqual([expect.stringMatching(/dist\/live\/js\/guest\.js$/), "-"]);
  expect(args.join(" ")).not.toContain("--permission");
  expect(env).toEqual({ NODE_OPTIONS: "" });
  expect(cwd).toBeUndefined();
});

it("jsRuntime accepts another Node, folder and environment", async () => {
  const options = { command: "/opt/node", cwd: "/tmp", env: { A: "1" } };
  expect(await jsRuntime(options).start(DEFAULT_LIMITS)).toMatchObject({
    command: "/opt/node",
    cwd: "/tmp",
    env: { A: "1" },
  });
});

it.runIf(major < 24)("jsRuntime refuses `permission` if this Node would refuse the inspector", async () => {
  const refusal: unknown = await jsRuntime({ permission: true })
    .start(DEFAULT_LIMITS)
    .then(undefined, (error: unknown) => error);
  expect(refusal).toBeInstanceOf(ConnectionError);
  expect(refusal).toMatchObject({ kind: "spawn", message: expect.stringContaining("Node 24 or later") as string });
});

it("jsRuntime refuses a command that is not Node", async () => {
  const started = jsRuntime({ permission: true, command: "/bin/false" }).start(DEFAULT_LIMITS);
  await expect(started).rejects.toThrow("/bin/false is not a Node executable, or cannot be run");
});
