// Tasks between every two revisions, with a bridge in between. Client and server each use the form of tasks that their
// revision has. Where both have one, the caller gets a handle; where one has none, the caller waits for the result. The
// tool sees no difference.

import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../support/waiting.ts";
import type { CallToolResult, DetailedTask } from "../../src/client/index.ts";
import { McpError } from "../../src/index.ts";
import { NEWEST, NEWEST_SESSION, REVISIONS } from "../../src/protocol/revisions/index.ts";
import { createServer, type Server } from "../../src/server/index.ts";
import { itWithSpec, specOf } from "../support/spec/official-schema.ts";
import { MessageValidator } from "../support/spec/message-validator.ts";
import { bridgeInMemory } from "./bridge-setup.ts";

const REQUIRED = { support: "required", pollIntervalMs: 100 } as const;
const NAME = { type: "object", properties: { name: { type: "string" } } } as const;

const textOf = ({ content }: CallToolResult): unknown => (content[0] as { text?: string } | undefined)?.text;

interface Jobs {
  readonly server: Server;
  /** One for each call of `hold`, which it ends. */
  readonly releases: ((text: string) => void)[];
  readonly signals: AbortSignal[];
}

function makeJobs(): Jobs {
  const releases: Jobs["releases"] = [];
  const signals: AbortSignal[] = [];
  const server = createServer({ name: "jobs", version: "1" })
    .tool("plain", {}, () => "at once")
    .tool("ask", { task: REQUIRED }, async (_args, { ask }) => {
      const [{ roots }, { model }] = await Promise.all([
        ask.roots(),
        ask.sample({ messages: [{ role: "user", content: { type: "text", text: "2+2?" } }], maxTokens: 5 }),
      ]);
      return `${roots.length} ${model}`;
    })
    .tool("form", { task: REQUIRED }, async (_args, { ask }) => {
      const { content } = await ask.elicit({ message: "Name?", requestedSchema: NAME });
      return String(content?.["name"]);
    })
    .tool("fail", { task: REQUIRED }, () => {
      throw new Error("No paper");
    })
    .tool("break", { task: REQUIRED }, () => {
      throw new McpError(-31_001, "Out of order", { since: 1 });
    })
    .tool("hold", { task: { support: "optional", pollIntervalMs: 100 } }, (_args, { signal }) => {
      signals.push(signal);
      return new Promise<string>((resolve, reject) => {
        releases.push(resolve);
        signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
      });
    });
  return { server, releases, signals };
}

/** The schemas lack the tasks extension, and have a task in place of a result only as a type of its own. */
function isAboutTasks(problem: string, message: object): boolean {
  const isExtension = /has no (request tasks\/|notification notifications\/tasks)/.test(problem);
  if (isExtension) return problem.startsWith(NEWEST.name);
  const { result } = message as { readonly result?: { readonly task?: object; readonly resultType?: string } };
  if (result?.task !== undefined) return specOf(NEWEST_SESSION.name).validator("CreateTaskResult", true)(result);
  return result?.resultType === "task";
}

describe.each(REVISIONS)("a caller of $name", ({ name: caller, requests: callerMethods }) => {
  describe.each(REVISIONS)("and a server of $name", ({ name: revision, requests: serverMethods }) => {
    const both = callerMethods.has("tasks/get") && serverMethods.has("tasks/get");
    const { server, releases, signals } = makeJobs();
    const elicited: string[] = [];
    let bridged: Awaited<ReturnType<typeof bridgeInMemory>>;

    beforeAll(async () => {
      bridged = await bridgeInMemory(server, caller, revision, {
        elicit: ({ message }) => {
          elicited.push(message);
          return { action: "accept", content: { name: "Ada" } };
        },
        sample: () => ({ role: "assistant", model: "calculator", content: { type: "text", text: "4" } }),
        roots: [{ uri: "file:///work" }],
      });
    });
    afterEach(() => {
      releases.length = 0;
      signals.length = 0;
    });
    afterAll(async () => {
      await bridged.close();
      await server.close();
    });
    const untilHeld = (): Promise<void> => eventually(() => expect(releases).toHaveLength(1));

    it("a caller of tasks calls a tool that is always a task like any other, and answers its requests", async () => {
      expect(textOf(await bridged.client.callTool("ask"))).toBe("1 calculator");
      expect(await bridged.client.callTool("fail")).toMatchObject({ isError: true, content: [{ text: "No paper" }] });
      await expect(bridged.client.callTool("break")).rejects.toMatchObject({ code: -31_001, message: "Out of order" });
    });

    it("a caller of tasks starts a task, follows its status, and gets its result", async () => {
      const starting = bridged.client.callToolAsTask("hold");
      await untilHeld();
      if (!both) releases[0]?.("held");
      const handle = await starting;
      expect([handle.id !== "", handle.isOver]).toEqual([both, !both]);
      const seen: string[] = [];
      const watching = (async () => {
        for await (const { status } of handle) seen.push(status);
      })();
      releases[0]?.("held");
      expect(textOf(await handle.result())).toBe("held");
      await watching;
      expect(seen).toEqual(both ? ["working", "completed"] : ["completed"]);
    });

    it("a caller of tasks cancels the task with the call", async () => {
      const controller = new AbortController();
      const call = bridged.client.callTool("hold", {}, { signal: controller.signal });
      await untilHeld();
      controller.abort(new Error("enough"));
      await expect(call).rejects.toMatchObject({ kind: "cancelled" });
      await eventually(() => expect(signals[0]?.aborted).toBe(true));
    });

    it("a caller of tasks answers at once where the tool is never a task", async () => {
      const handle = await bridged.client.callToolAsTask("plain");
      expect(textOf(await handle.result())).toBe("at once");
      // A stateless server has no field for what its tools support, so such a caller gets a task that is over.
      const isUnstated = both && caller === NEWEST_SESSION.name && revision === NEWEST.name;
      expect(handle.id === "").toBe(!isUnstated);
    });

    if (both) {
      it("a caller of tasks answers each request of a task once, while its status is followed", async () => {
        elicited.length = 0;
        const handle = await bridged.client.callToolAsTask("form");
        const states: DetailedTask[] = [];
        handle.onStatus((state) => states.push(state));
        expect(textOf(await handle.result())).toBe("Ada");
        expect(elicited).toEqual(["Name?"]);
        expect(states.at(-1)).toMatchObject({ status: "completed", result: { content: [{ text: "Ada" }] } });
      });

      it("a caller of tasks cancels by the handle, and finds the cancelled task afterwards", async () => {
        const handle = await bridged.client.callToolAsTask("hold");
        await untilHeld();
        const waiting = handle.result();
        waiting.catch(() => undefined);
        await handle.cancel();
        await expect(waiting).rejects.toMatchObject({ kind: "cancelled" });
        expect(signals[0]?.aborted).toBe(true);
        expect((await bridged.client.task(handle.id)).status).toBe("cancelled");
        await expect(bridged.client.task("none")).rejects.toMatchObject({ code: -32602 });
      });
    }

    itWithSpec("a caller of tasks sends nothing on either connection that its revision forbids", () => {
      const faults = bridged.connections.flatMap(({ name, revision, messages }) => {
        const judge = new MessageValidator(revision);
        return messages.flatMap(({ from, message }) => {
          const problems = judge.validate(from, message).filter((problem) => !isAboutTasks(problem, message));
          return problems.length === 0 ? [] : [`${name}: ${JSON.stringify(message)}: ${problems.join("; ")}`];
        });
      });
      expect(faults).toEqual([]);
    });
  });
});
