// The file of --trace: it is limited, and stays private.

import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { fakeCaller } from "../../../test/support/handlers/fake-client.ts";
import type { Context } from "../../core/handler.ts";
import { NEWEST } from "../../protocol/revisions/index.ts";
import { Trace } from "./trace.ts";

it("begins another file at its limit, and keeps one before it", async () => {
  const folder = mkdtempSync(join(tmpdir(), "catenary-trace-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "trace");
  const onError = vi.fn<(message: string) => void>();
  const handler = new Trace(file, onError, 2_000).callers(async () => ({ resultType: "complete" }));
  const context: Context = {
    ...{ revision: NEWEST.name, caller: fakeCaller(), signal: new AbortController().signal },
    ...{ notify: () => undefined, ask: () => Promise.reject(new Error("unexpected")) },
  };
  for (let count = 0; count < 30; count += 1) {
    await handler({ method: "tools/call", params: { name: `call ${count}` } }, context);
    await new Promise(setImmediate);
  }
  expect(onError).not.toHaveBeenCalled();
  expect(readdirSync(folder).toSorted()).toEqual(["trace", "trace.1"]);
  for (const name of ["trace", "trace.1"]) {
    const { size, mode } = statSync(join(folder, name));
    expect(size).toBeLessThanOrEqual(2_000);
    expect(mode & 0o777).toBe(0o600);
  }
  // Nothing is lost between them.
  const lines = `${readFileSync(join(folder, "trace.1"), "utf8")}${readFileSync(file, "utf8")}`.trimEnd().split("\n");
  const ids = lines.map((line) => (JSON.parse(line) as { id: number }).id);
  const [first = 0] = ids;
  expect([...new Set(ids)]).toEqual(Array.from({ length: 31 - first }, (_, at) => first + at));
});
