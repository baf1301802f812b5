// Completions of prompt arguments and template variables: whose completer is asked, what it is told, and how much
// of its answer goes out.

import { describe, expect, it } from "vitest";
import { desk } from "../../test/support/desk.ts";
import { META } from "../protocol/model/index.ts";
import { createServer } from "./server.ts";

const info = { name: "test", version: "1" };

const languages = ["go", "java", "javascript", "lisp"];
const server = createServer(info)
  .prompt(
    "write",
    {
      arguments: {
        language: { complete: (value) => languages.filter((name) => name.startsWith(value)) },
        style: { complete: async (_value, context) => [`like ${context.arguments["language"] ?? "nothing"}`] },
        topic: {},
      },
    },
    () => "x",
  )
  .template("n:{year}/{month}", { complete: { year: () => Array.from({ length: 250 }, (_, n) => `${n}`) } }, () => "x")
  .resource("n:now", {}, () => "x");

const prompt = { type: "ref/prompt", name: "write" };
const complete = (ref: object, name: string, value = "", context?: object) =>
  desk(server).call("completion/complete", {
    ref,
    argument: { name, value },
    ...(context === undefined ? undefined : { context }),
  });

describe("completions", () => {
  it("come from the prompt's argument", async () => {
    expect(await complete(prompt, "language", "ja")).toEqual({
      completion: { values: ["java", "javascript"], total: 2, hasMore: false },
      resultType: "complete",
      _meta: { [META.serverInfo]: info },
    });
  });

  it("know what was chosen already", async () => {
    const chosen = await complete(prompt, "style", "", { arguments: { language: "lisp" } });
    expect(chosen).toMatchObject({ completion: { values: ["like lisp"] } });
    expect(await complete(prompt, "style")).toMatchObject({ completion: { values: ["like nothing"] } });
  });

  it("are at most a hundred, with how many there are", async () => {
    const { completion } = await complete({ type: "ref/resource", uri: "n:{year}/{month}" }, "year");
    expect(completion).toMatchObject({ total: 250, hasMore: true });
    expect((completion as { values: string[] }).values).toHaveLength(100);
  });

  it("are none for an argument that nobody completes", async () => {
    const none = { completion: { values: [], total: 0, hasMore: false } };
    expect(await complete(prompt, "topic")).toMatchObject(none);
    expect(await complete({ type: "ref/resource", uri: "n:{year}/{month}" }, "month")).toMatchObject(none);
  });

  it("refuse what is not there", async () => {
    const refused = (ref: object, name: string) =>
      desk(server).refused("completion/complete", { ref, argument: { name, value: "" } });
    for (const ref of [
      { type: "ref/prompt", name: "nope" },
      { type: "ref/resource", uri: "n:{nope}" },
      { type: "ref/other", uri: "x:y" },
      { type: "ref/prompt" },
    ]) {
      expect((await refused(ref, "a")).kind).toBe("invalid_params");
    }
    expect((await refused(prompt, "constructor")).message).toBe("The prompt write has no argument constructor");
    expect((await refused({ type: "ref/resource", uri: "n:now" }, "a")).message).toContain("has no argument a");
  });

  it("that fail are errors of the protocol", async () => {
    const broken = createServer(info)
      .prompt("p", { arguments: { a: { complete: () => Promise.reject(new Error("no words")) } } }, () => "x")
      .template("t:{id}", { list: () => Promise.reject(new Error("no list")) }, () => "x");
    const ref = { type: "ref/prompt", name: "p" };
    const error = await desk(broken).refused("completion/complete", { ref, argument: { name: "a", value: "" } });
    expect(error.toBody()).toEqual({ code: -32603, message: "no words", data: { kind: "internal_error" } });
    expect((await desk(broken).refused("resources/list")).message).toBe("no list");
  });

  it("are a capability only where somebody completes", async () => {
    const without = createServer(info)
      .prompt("p", { arguments: { a: {} } }, () => "x")
      .template("t:{constructor}", { complete: {} }, () => "x");
    expect(await desk(without).call("server/discover")).not.toHaveProperty("capabilities.completions");
    expect((await desk(without).refused("completion/complete")).kind).toBe("method_not_found");
    expect(await desk(server).call("server/discover")).toHaveProperty("capabilities.completions", {});
  });
});
