// What a tool and a server may say of tasks, and what each is told where it says something else.

import { describe, expect, it } from "vitest";
import { createServer } from "./server.ts";

const add = (task: unknown): void => {
  const server = createServer({ name: "a", version: "1" });
  server.tool("job", { task } as object, () => "done");
};

describe("a tool", () => {
  it.each([
    [undefined],
    ["optional"],
    ["required"],
    ["forbidden"],
    [{ support: "forbidden" }],
    [{ support: "optional", when: "at-once" }],
    [{ support: "required", when: "when-detached", ttlMs: 1, pollIntervalMs: 1 }],
  ])("may say %j", (task) => {
    expect(() => add(task)).not.toThrow();
  });

  it.each([
    ["always", 'Tool job: its task must be "optional", "required", "forbidden" or an object'],
    [true, 'Tool job: its task must be "optional", "required", "forbidden" or an object'],
    [{}, 'Tool job: its task.support must be "optional", "required" or "forbidden"'],
    [{ support: "maybe" }, 'Tool job: its task.support must be "optional", "required" or "forbidden"'],
    [{ support: "optional", when: "later" }, 'Tool job: its task.when must be "at-once" or "when-detached"'],
    [{ support: "optional", ttlMs: 0 }, "Tool job: its task.ttlMs must be a whole number above 0"],
    [{ support: "optional", ttlMs: 1.5 }, "Tool job: its task.ttlMs must be a whole number above 0"],
    [{ support: "optional", pollIntervalMs: "1" }, "Tool job: its task.pollIntervalMs must be a whole number above 0"],
  ])("may not say %j", (task, message) => {
    expect(() => add(task)).toThrow(new TypeError(message));
  });
});

describe("a server", () => {
  it("is told which of its limits is none", () => {
    for (const field of ["max", "maxPerCaller", "ttlMs", "maxTtlMs", "pollIntervalMs"]) {
      expect(() => createServer({ name: "a", version: "1", tasks: { [field]: -1 } })).toThrow(
        new TypeError(`createServer(): its tasks.${field} must be a whole number above 0`),
      );
    }
  });
});
