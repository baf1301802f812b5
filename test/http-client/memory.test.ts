// What a result of ten megabytes costs the whole client: at most three times its bytes. Node's own reading leaves behind
// what it reads, for V8 to collect when it likes; so much of it as is seen when nothing of the same answer is kept is
// measured too, and allowed on top.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import { FaultyEnd } from "../support/faulty-end.ts";
import { OLD, opened, STYLES } from "./stage.ts";

const MIB = 1024 * 1024;
const BYTES = 10 * MIB;
const CALLER = fileURLToPath(new URL("big-caller.ts", import.meta.url));

async function measure(url: string, manner = "client"): Promise<{ length: number; peak: number }> {
  const args = ["--expose-gc", "--import", "tsx", CALLER, url, String(BYTES), manner];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const output: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => output.push(chunk));
  const [code] = await once(child, "close");
  expect(code).toBe(0);
  return JSON.parse(Buffer.concat(output).toString()) as { length: number; peak: number };
}

describe.runIf(process.platform === "linux")("a result of ten megabytes", () => {
  let nothing = 0;

  beforeAll(async () => {
    const end = await FaultyEnd.open();
    ({ peak: nothing } = await measure(end.url, "nobody"));
    await end.close();
  }, 30_000);

  it.each([
    ["as JSON", STYLES["exchanges"]],
    ["as an event", STYLES["exchanges as streams"]],
    ["as an event of a session", STYLES["sessions"]],
    ["by the old pair of addresses", OLD],
  ])("%s takes at most three times its bytes", async (_, options) => {
    const end = await opened(options);
    const whole = await measure(end.url);
    expect(whole.length).toBe(BYTES);
    expect(whole.peak).toBeLessThanOrEqual(3 * BYTES + nothing);
  });
});
