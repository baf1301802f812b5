// The server behind the gateways of wire.test.ts.

import { createServer, type Server } from "../../../src/server/server.ts";

const FORM = { type: "object", properties: { answer: { type: "string" } } } as const;

export const wireServer: Server = createServer({ name: "wire", version: "1.0.0" })
  .tool("echo", {}, ({ text }, context) => {
    context.progress(1, 2);
    return String(text);
  })
  .tool("ask", {}, async (_input, context) => {
    const { content } = await context.ask.elicit({ message: "Which?", requestedSchema: FORM });
    return `You said ${String(content?.["answer"])}`;
  });
