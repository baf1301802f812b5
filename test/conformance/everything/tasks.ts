// Tools for tasks: one that never is a task, one that takes a given time, two that fail as a tool and as the protocol,
// and three that elicit during the task or before it.

import { setTimeout as sleep } from "node:timers/promises";
import { McpError, UserError, type Server } from "../../../src/index.ts";

/** Long enough for a client to see the task at work. */
const WORK_MS = 300;

const CONFIRM = {
  type: "object",
  properties: { confirm: { type: "boolean", description: "Really?" } },
  required: ["confirm"],
} as const;
const NAME = { type: "object", properties: { name: { type: "string" } }, required: ["name"] } as const;
const FILENAME = { type: "object", properties: { filename: { type: "string" } }, required: ["filename"] } as const;
const AMOUNT = {
  type: "object",
  properties: { seconds: { type: "number", minimum: 0 }, label: { type: "string" } },
  required: ["seconds"],
} as const;

export function addTasks(server: Server): void {
  addWork(server);
  addElicitations(server);
}

function addWork(server: Server): void {
  server
    .tool("greet", { description: "Greets at once", input: NAME }, ({ name }) => `Hello, ${name}!`)
    .tool(
      "slow_compute",
      { description: "Takes the given time", input: AMOUNT, task: "optional" },
      async ({ seconds, label }, { signal }) => {
        await sleep(seconds * 1_000, undefined, { signal });
        return `Computed ${label ?? "it"} in ${seconds} s`;
      },
    )
    .tool("failing_job", { description: "Fails as a tool", task: "required" }, async () => {
      await sleep(WORK_MS);
      throw new UserError("The job fails on purpose");
    })
    .tool("protocol_error_job", { description: "Fails with a protocol error", task: "optional" }, async () => {
      await sleep(WORK_MS);
      throw McpError.of("internal_error", "The job broke the protocol on purpose");
    });
}

function addElicitations(server: Server): void {
  server
    .tool(
      "confirm_delete",
      { description: "Elicits a confirmation", input: FILENAME, task: "optional" },
      async ({ filename }, { ask }) => {
        const { action, content } = await ask.elicit({ message: `Delete ${filename}?`, requestedSchema: CONFIRM });
        return action === "accept" && content?.["confirm"] ? `Deleted ${filename}` : `Kept ${filename}`;
      },
    )
    .tool("multi_input", { description: "Elicits twice at once", task: "optional" }, async (_args, { ask }) => {
      const answers = await Promise.all([
        ask.elicit({ message: "Your name?", requestedSchema: NAME }, { key: "name" }),
        ask.elicit({ message: "Are you sure?", requestedSchema: CONFIRM }, { key: "confirm" }),
      ]);
      return answers.map(({ action }) => action).join(", ");
    })
    .tool(
      "test_tool_with_task",
      { description: "Elicits first, then continues as a task", task: { support: "required", when: "when-detached" } },
      async (_args, { ask, detach }) => {
        const { content } = await ask.elicit(
          { message: "What is your name?", requestedSchema: NAME },
          { key: "user_name" },
        );
        detach();
        return `Hello, ${String(content?.["name"])}!`;
      },
    );
}
