// The type of an answer to `ask.elicit` follows from the form, also if the form is a literal JSON Schema.

import { expect, expectTypeOf, it } from "vitest";
import { connect } from "../client/connect.ts";
import { createServer } from "./server.ts";

it("types the answer by a literal JSON Schema", async () => {
  const server = createServer({ name: "test", version: "1" }).tool("greet", {}, async (_args, { ask }) => {
    const answer = await ask.elicit({
      message: "Who?",
      requestedSchema: {
        type: "object",
        properties: {
          name: { type: "string" },
          age: { type: "integer" },
          role: { type: "string", enum: ["user", "admin"] },
        },
        required: ["name"],
      },
    });
    if (answer.action !== "accept") return "declined";
    expectTypeOf(answer.content).toEqualTypeOf<{ name: string; age?: number; role?: "user" | "admin" }>();
    return answer.content.name.toUpperCase();
  });
  await using client = await connect(server, { elicit: () => ({ action: "accept", content: { name: "ada" } }) });
  expect((await client.callTool("greet")).content).toEqual([{ type: "text", text: "ADA" }]);
});
