// Tools that ask the caller in mid-call, as the session-style scenarios want it, and the two that an
// exchange-style scenario calls to see what a server does with a caller that cannot answer, or could.

import type { Server } from "../../../src/index.ts";
import type { CreateMessageResult, ElicitResult, FormField, InputRequest } from "../../../src/protocol/model/index.ts";
import { inputRequired } from "../../../src/server/index.ts";

const PROMPT = {
  type: "object",
  properties: { prompt: { type: "string", description: "What to ask the model" } },
  required: ["prompt"],
} as const;
const MESSAGE = {
  type: "object",
  properties: { message: { type: "string", description: "What to ask the person" } },
  required: ["message"],
} as const;

const choices = (words: readonly string[], of: string): { const: string; title: string }[] =>
  words.map((word, index) => ({ const: `value${index + 1}`, title: `${word} ${of}` }));

export function addAsks(server: Server): void {
  server
    .tool("test_sampling", { description: "Asks the caller's model", input: PROMPT }, async ({ prompt }, { ask }) => {
      const messages = [{ role: "user" as const, content: { type: "text" as const, text: prompt } }];
      return `LLM response: ${textOf(await ask.sample({ messages, maxTokens: 100 }))}`;
    })
    .tool("test_elicitation", { description: "Asks the person", input: MESSAGE }, async ({ message }, { ask }) => {
      const requestedSchema = {
        type: "object" as const,
        properties: {
          username: { type: "string" as const, description: "User's response" },
          email: { type: "string" as const, description: "User's email address" },
        },
        required: ["username", "email"],
      };
      return outcomeOf(await ask.elicit({ message, requestedSchema }));
    })
    .tool("test_elicitation_sep1034_defaults", { description: "Asks with defaults" }, async (_args, { ask }) =>
      outcomeOf(
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
    .tool("test_elicitation_sep1330_enums", { description: "Asks for choices of every form" }, async (_args, { ask }) =>
      outcomeOf(
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
    .tool("test_missing_capability", { description: "Needs a caller that has a model" }, async (_args, { ask }) => {
      const messages = [{ role: "user" as const, content: { type: "text" as const, text: "Say something." } }];
      return textOf(await ask.sample({ messages, maxTokens: 10 }));
    })
    .tool("test_streaming_elicitation", { description: "Asks the person, whoever calls" }, async (_args, { ask }) =>
      outcomeOf(
        await ask.elicit({
          message: "Shall it go on?",
          requestedSchema: { type: "object", properties: { go: { type: "boolean" } }, required: ["go"] },
        }),
      ),
    );
}

/** The first text that a model gave. */
export function textOf({ content }: CreateMessageResult): string {
  const blocks: readonly unknown[] = Array.isArray(content) ? content : [content];
  const texts = blocks.map((block) => (block as { readonly text?: unknown }).text);
  return texts.find((text) => typeof text === "string") ?? "";
}

function outcomeOf({ action, content }: ElicitResult): string {
  return `Elicitation completed: action=${action}, content=${JSON.stringify(content ?? {})}`;
}

// Tools that cannot answer in their first round. Most wait in memory for what they asked (`context.ask`); those
// that the scenarios hold to their state keep nothing and let the state travel with the caller (`inputRequired`).


const form = (message: string, name: string, field: FormField = { type: "string" }) => ({
  message,
  requestedSchema: { type: "object" as const, properties: { [name]: field }, required: [name] },
});

const question = (text: string, maxTokens: number) => ({
  messages: [{ role: "user" as const, content: { type: "text" as const, text } }],
  maxTokens,
});

const CONFIRM = { method: "elicitation/create", params: form("Please confirm", "ok", { type: "boolean" }) } as const;

export function addRounds(server: Server): void {
  addWaiting(server);
  addStateful(server);
}

function addWaiting(server: Server): void {
  server
    .tool("test_input_required_result_elicitation", { description: "Asks for a name" }, async (_args, { ask }) => {
      const { content } = await ask.elicit(form("What is your name?", "name"), { key: "user_name" });
      return `Hello, ${String(content?.["name"])}!`;
    })
    .tool("test_input_required_result_sampling", { description: "Asks the caller's model" }, async (_args, { ask }) =>
      textOf(await ask.sample(question("What is the capital of France?", 100), { key: "capital_question" })),
    )
    .tool("test_input_required_result_list_roots", { description: "Asks for the roots" }, async (_args, { ask }) => {
      const { roots } = await ask.roots({ key: "client_roots" });
      return roots.map(({ uri }) => uri).join("\n");
    })
    .tool(
      "test_input_required_result_multiple_inputs",
      { description: "Asks thrice at once" },
      async (_args, { ask }) => {
        const [person, greeting, { roots }] = await Promise.all([
          ask.elicit(form("What is your name?", "name"), { key: "user_name" }),
          ask.sample(question("Generate a greeting", 50), { key: "greeting" }),
          ask.roots({ key: "client_roots" }),
        ]);
        return `${textOf(greeting)} ${String(person.content?.["name"])}, at home in ${roots.length} root(s)`;
      },
    )
    .tool(
      "test_input_required_result_multi_round",
      { description: "Asks one after the other" },
      async (_args, { ask }) => {
        const { content: first } = await ask.elicit(form("Step 1: What is your name?", "name"), { key: "step1" });
        const { content: second } = await ask.elicit(form("Step 2: What is your favorite color?", "color"), {
          key: "step2",
        });
        return `${String(first?.["name"])} likes ${String(second?.["color"])}`;
      },
    );
}

function addStateful(server: Server): void {
  server
    .tool(
      "test_input_required_result_request_state",
      { description: "Gives a state away and wants it back" },
      (_args, { answers, state }) => {
        if (answers["confirm"] === undefined || state !== "asked") return inputRequired({ confirm: CONFIRM }, "asked");
        return "state-ok";
      },
    )
    .tool(
      "test_input_required_result_tampered_state",
      { description: "Gives a state away that nobody may alter" },
      (_args, { answers }) =>
        answers["confirm"] === undefined ? inputRequired({ confirm: CONFIRM }, { step: 1 }) : "The state was untouched",
    )
    .tool(
      "test_input_required_result_capabilities",
      { description: "Asks only what the caller can answer" },
      (_args, { answers, caller }) => {
        if (Object.keys(answers).length > 0) return `Answered: ${Object.keys(answers).join(", ")}`;
        const able: Readonly<Record<string, InputRequest>> = {
          elicitation: { method: "elicitation/create", params: form("What is your name?", "name") },
          sampling: { method: "sampling/createMessage", params: question("Say something.", 10) },
          roots: { method: "roots/list" },
        };
        const asked = Object.entries(able).filter(([capability]) => capability in caller.capabilities);
        return asked.length === 0 ? "Nothing can be asked" : inputRequired(Object.fromEntries(asked));
      },
    );
}
