// Tools that cannot answer in their first round. Most wait in memory for what they asked (`context.ask`); those
// that the scenarios hold to their state keep nothing and let the state travel with the caller (`inputRequired`).

import type { Server } from "../../../src/index.ts";
import type { FormField, InputRequest } from "../../../src/protocol/model/index.ts";
import { inputRequired } from "../../../src/server/index.ts";
import { textOf } from "./asks.ts";

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
