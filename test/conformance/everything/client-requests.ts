// Tools that send requests to the client during a call. `addClientRequests` has those for sessions and two that test what
// a stateless server does with and without the capability; `addInputRequired` has those for `input_required` results.

import type { Server } from "../../../src/index.ts";
import type { CreateMessageResult, FormField, InputRequest } from "../../../src/protocol/model/index.ts";
import { inputRequired } from "../../../src/server/index.ts";

const PROMPT = {
  type: "object",
  properties: { prompt: { type: "string", description: "What to ask the model" } },
  required: ["prompt"],
} as const;
const MESSAGE = {
  type: "object",
  properties: { message: { type: "string", description: "What to ask the user" } },
  required: ["message"],
} as const;

const choices = (ordinals: readonly string[], noun: string): { const: string; title: string }[] =>
  ordinals.map((ordinal, index) => ({ const: `value${index + 1}`, title: `${ordinal} ${noun}` }));

export function addClientRequests(server: Server): void {
  server
    .tool(
      "test_sampling",
      { description: "Samples the client's model", input: PROMPT },
      async ({ prompt }, { ask }) => {
        const messages = [{ role: "user" as const, content: { type: "text" as const, text: prompt } }];
        return `LLM response: ${textOf(await ask.sample({ messages, maxTokens: 100 }))}`;
      },
    )
    .tool(
      "test_elicitation",
      { description: "Elicits from the user", input: MESSAGE },
      async ({ message }, { ask }) => {
        const requestedSchema = {
          type: "object" as const,
          properties: {
            username: { type: "string" as const, description: "User's response" },
            email: { type: "string" as const, description: "User's email address" },
          },
          required: ["username", "email"],
        };
        return describeOutcome(await ask.elicit({ message, requestedSchema }));
      },
    )
    .tool("test_elicitation_sep1034_defaults", { description: "Elicits with defaults" }, async (_args, { ask }) =>
      describeOutcome(
        await ask.elicit({
          message: "Please review and update the form fields with defaults",
          requestedSchema: {
            type: "object",
            properties: {
              name: { type: "string", description: "User name", default: "John Doe" },
              age: { type: "integer", description: "User age", default: 30 },
              score: { type: "number", description: "User score", default: 95.5 },
              status: {
                type: "string",
                description: "User status",
                enum: ["active", "inactive", "pending"],
                default: "active",
              },
              verified: { type: "boolean", description: "Verification status", default: true },
            },
          },
        }),
      ),
    )
    .tool("test_elicitation_sep1330_enums", { description: "Elicits choices of every form" }, async (_args, { ask }) =>
      describeOutcome(
        await ask.elicit({
          message: "Please select options from the enum fields",
          requestedSchema: {
            type: "object",
            properties: {
              untitledSingle: { type: "string", enum: ["option1", "option2", "option3"] },
              titledSingle: { type: "string", oneOf: choices(["First", "Second", "Third"], "Option") },
              legacyEnum: {
                type: "string",
                enum: ["opt1", "opt2", "opt3"],
                enumNames: ["Option One", "Option Two", "Option Three"],
              },
              untitledMulti: { type: "array", items: { type: "string", enum: ["option1", "option2", "option3"] } },
              titledMulti: { type: "array", items: { anyOf: choices(["First", "Second", "Third"], "Choice") } },
            },
          },
        }),
      ),
    )
    .tool("test_missing_capability", { description: "Needs a client with sampling" }, async (_args, { ask }) => {
      const messages = [{ role: "user" as const, content: { type: "text" as const, text: "Say something." } }];
      return textOf(await ask.sample({ messages, maxTokens: 10 }));
    })
    .tool("test_streaming_elicitation", { description: "Elicits from any client" }, async (_args, { ask }) =>
      describeOutcome(
        await ask.elicit({
          message: "Continue?",
          requestedSchema: { type: "object", properties: { go: { type: "boolean" } }, required: ["go"] },
        }),
      ),
    );
}

/** The first text of a sampling result. */
function textOf({ content }: CreateMessageResult): string {
  const blocks: readonly unknown[] = Array.isArray(content) ? content : [content];
  const texts = blocks.map((block) => (block as { readonly text?: unknown }).text);
  return texts.find((text) => typeof text === "string") ?? "";
}

function describeOutcome({ action, content }: { readonly action: string; readonly content?: unknown }): string {
  return `Elicitation completed: action=${action}, content=${JSON.stringify(content ?? {})}`;
}

const form = (message: string, name: string, field: FormField = { type: "string" }) => ({
  message,
  requestedSchema: { type: "object" as const, properties: { [name]: field }, required: [name] },
});

const samplingParams = (text: string, maxTokens: number) => ({
  messages: [{ role: "user" as const, content: { type: "text" as const, text } }],
  maxTokens,
});

const CONFIRM = { method: "elicitation/create", params: form("Please confirm", "ok", { type: "boolean" }) } as const;

export function addInputRequired(server: Server): void {
  addParkedCalls(server);
  addStateful(server);
}

/** These wait in memory for the answer, by `context.ask`. */
function addParkedCalls(server: Server): void {
  server
    .tool("test_input_required_result_elicitation", { description: "Elicits a name" }, async (_args, { ask }) => {
      const { content } = await ask.elicit(form("What is your name?", "name"), { key: "user_name" });
      return `Hello, ${String(content?.["name"])}!`;
    })
    .tool(
      "test_input_required_result_sampling",
      { description: "Samples the client's model" },
      async (_args, { ask }) =>
        textOf(await ask.sample(samplingParams("What is the capital of France?", 100), { key: "capital_question" })),
    )
    .tool("test_input_required_result_list_roots", { description: "Lists the roots" }, async (_args, { ask }) => {
      const { roots } = await ask.roots({ key: "client_roots" });
      return roots.map(({ uri }) => uri).join("\n");
    })
    .tool(
      "test_input_required_result_multiple_inputs",
      { description: "Sends three requests at once" },
      async (_args, { ask }) => {
        const [person, greeting, { roots }] = await Promise.all([
          ask.elicit(form("What is your name?", "name"), { key: "user_name" }),
          ask.sample(samplingParams("Generate a greeting", 50), { key: "greeting" }),
          ask.roots({ key: "client_roots" }),
        ]);
        return `${textOf(greeting)} ${String(person.content?.["name"])}, with ${roots.length} root(s)`;
      },
    )
    .tool(
      "test_input_required_result_multi_round",
      { description: "Sends two requests in turn" },
      async (_args, { ask }) => {
        const { content: first } = await ask.elicit(form("Step 1: What is your name?", "name"), { key: "step1" });
        const { content: second } = await ask.elicit(form("Step 2: What is your favorite color?", "color"), {
          key: "step2",
        });
        return `${String(first?.["name"])} likes ${String(second?.["color"])}`;
      },
    );
}

/** These keep nothing in memory: the state travels with the client, by `inputRequired`. */
function addStateful(server: Server): void {
  server
    .tool(
      "test_input_required_result_request_state",
      { description: "Sends a state and expects it back" },
      (_args, { answers, state }) => {
        if (answers["confirm"] === undefined || state !== "asked") return inputRequired({ confirm: CONFIRM }, "asked");
        return "state-ok";
      },
    )
    .tool(
      "test_input_required_result_tampered_state",
      { description: "Sends a state that must not be altered" },
      (_args, { answers }) =>
        answers["confirm"] === undefined
          ? inputRequired({ confirm: CONFIRM }, { step: 1 })
          : "The state was not altered",
    )
    .tool(
      "test_input_required_result_capabilities",
      { description: "Sends only requests that the client supports" },
      (_args, { answers, caller }) => {
        if (Object.keys(answers).length > 0) return `Answered: ${Object.keys(answers).join(", ")}`;
        const requests: Readonly<Record<string, InputRequest>> = {
          elicitation: { method: "elicitation/create", params: form("What is your name?", "name") },
          sampling: { method: "sampling/createMessage", params: samplingParams("Say something.", 10) },
          roots: { method: "roots/list" },
        };
        const supported = Object.entries(requests).filter(([capability]) => capability in caller.capabilities);
        return supported.length === 0
          ? "The client supports no requests"
          : inputRequired(Object.fromEntries(supported));
      },
    );
}
