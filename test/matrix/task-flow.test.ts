// Tasks between every two revisions: the caller's client and the server at the end each speak the form that their
// revision has, if it has one, and a bridge stands in between. Where both have a form, a handle comes back and does
// all that a handle does; where one has none, the call is waited for; the tool never knows the difference.

import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import type { CallToolResult, DetailedTask } from "../../src/client/index.ts";
import { McpError } from "../../src/index.ts";
import { NEWEST, NEWEST_SESSION, REVISIONS } from "../../src/protocol/revisions/index.ts";
import { createServer, type Server } from "../../src/server/index.ts";
import { itWithSpec, specOf } from "../support/schema.ts";
import { MessageJudge } from "../support/message-judge.ts";
import { bridged } from "./arrange.ts";

const REQUIRED = { support: "required", pollIntervalMs: 100 } as const;
const NAME = { type: "object", properties: { name: { type: "string" } } } as const;

const textOf = ({ content }: CallToolResult): unknown => (content[0] as { text?: string } | undefined)?.text;

interface Jobs {
  readonly server: Server;
  readonly doors: ((text: string) => void)[];
  readonly signals: AbortSignal[];
}

function jobs(): Jobs {
  const doors: Jobs["doors"] = [];
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
        doors.push(resolve);
        signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
      });
    });
  return { server, doors, signals };
}

/** The official schemas have the extension's words apart, and a task instead of a result only as a shape of its own. */
function isTaskWord(problem: string, message: object): boolean {
  const isExtension = /has no (request tasks\/|notification notifications\/tasks)/.test(problem);
  if (isExtension) return problem.startsWith(NEWEST.name);
  const { result } = message as { readonly result?: { readonly task?: object; readonly resultType?: string } };
  if (result?.task !== undefined) return specOf(NEWEST_SESSION.name).validator("CreateTaskResult", true)(result);
  return result?.resultType === "task";
}

describe.each(REVISIONS)("a caller of $name", ({ name: caller, requests: ofCaller }) => {
  describe.each(REVISIONS)("and an end of $name", ({ name: end, requests: ofEnd }) => {
    const both = ofCaller.has("tasks/get") && ofEnd.has("tasks/get");
    const { server, doors, signals } = jobs();
    const asked: string[] = [];
    let flow: Awaited<ReturnType<typeof bridged>>;

    beforeAll(async () => {
      flow = await bridged(server, caller, end, {
        elicit: ({ message }) => {
          asked.push(message);
          return { action: "accept", content: { name: "Ada" } };
        },
        sample: () => ({ role: "assistant", model: "calculator", content: { type: "text", text: "4" } }),
        roots: [{ uri: "file:///work" }],
      });
    });
    afterEach(() => {
      doors.length = 0;
      signals.length = 0;
    });
    afterAll(async () => {
      await flow.close();
      await server.close();
    });
    const holding = (): Promise<void> => vi.waitFor(() => expect(doors).toHaveLength(1));

    it("calls a tool that is always a task as any other, and answers what it asks", async () => {
      expect(textOf(await flow.client.callTool("ask"))).toBe("1 calculator");
      expect(await flow.client.callTool("fail")).toMatchObject({ isError: true, content: [{ text: "No paper" }] });
      await expect(flow.client.callTool("break")).rejects.toMatchObject({ code: -31_001, message: "Out of order" });
    });

    it("starts one, looks on, and gets its result", async () => {
      const starting = flow.client.callToolAsTask("hold");
      await holding();
      if (!both) doors[0]?.("held");
      const handle = await starting;
      expect([handle.id !== "", handle.isOver]).toEqual([both, !both]);
      const seen: string[] = [];
      const looking = (async () => {
        for await (const { status } of handle) seen.push(status);
      })();
      doors[0]?.("held");
      expect(textOf(await handle.result())).toBe("held");
      await looking;
      expect(seen).toEqual(both ? ["working", "completed"] : ["completed"]);
    });

    it("cancels with the call", async () => {
      const stop = new AbortController();
      const call = flow.client.callTool("hold", {}, { signal: stop.signal });
      await holding();
      stop.abort(new Error("enough"));
      await expect(call).rejects.toMatchObject({ kind: "cancelled" });
      await vi.waitFor(() => expect(signals[0]?.aborted).toBe(true));
    });

    it("answers at once what is no task", async () => {
      const handle = await flow.client.callToolAsTask("plain");
      expect([handle.id, textOf(await handle.result())]).toEqual(["", "at once"]);
    });

    if (both) {
      it("answers in mid-task, each question once, while somebody looks on", async () => {
        asked.length = 0;
        const handle = await flow.client.callToolAsTask("form");
        const states: DetailedTask[] = [];
        handle.onStatus((state) => states.push(state));
        expect(textOf(await handle.result())).toBe("Ada");
        expect(asked).toEqual(["Name?"]);
        expect(states.at(-1)).toMatchObject({ status: "completed", result: { content: [{ text: "Ada" }] } });
      });

      it("cancels by the handle, and finds what is left of it", async () => {
        const handle = await flow.client.callToolAsTask("hold");
        await holding();
        const waiting = handle.result();
        waiting.catch(() => undefined);
        await handle.cancel();
        await expect(waiting).rejects.toMatchObject({ kind: "cancelled" });
        expect(signals[0]?.aborted).toBe(true);
        expect((await flow.client.task(handle.id)).status).toBe("cancelled");
        await expect(flow.client.task("none")).rejects.toMatchObject({ code: -32602 });
      });
    }

    itWithSpec("says nothing on either wire that its revision forbids", () => {
      const faults = flow.wires.flatMap(({ name, revision, messages }) => {
        const judge = new MessageJudge(revision);
        return messages.flatMap(({ from, message }) => {
          const problems = judge.judge(from, message).filter((problem) => !isTaskWord(problem, message));
          return problems.length === 0 ? [] : [`${name}: ${JSON.stringify(message)}: ${problems.join("; ")}`];
        });
      });
      expect(faults).toEqual([]);
    });
  });
});
