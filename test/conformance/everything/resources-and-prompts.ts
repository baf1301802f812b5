// Resources and prompts: text, bytes, a template and a resource to subscribe to; prompts with arguments that complete,
// with a resource, with an image, and one that elicits.

import type { Server } from "../../../src/index.ts";
import { PNG } from "./samples.ts";

const WORDS = ["paris", "park", "party"];

export function addPrompts(server: Server): void {
  server
    .prompt(
      "test_simple_prompt",
      { description: "A prompt without arguments" },
      () => "This is a simple prompt for testing.",
    )
    .prompt(
      "test_prompt_with_arguments",
      {
        description: "A prompt with two arguments",
        arguments: {
          arg1: {
            description: "First test argument",
            required: true,
            complete: (typed) => WORDS.filter((word) => word.startsWith(typed)),
          },
          arg2: { description: "Second test argument", required: true },
        },
      },
      ({ arg1, arg2 }) => `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`,
    )
    .prompt(
      "test_prompt_with_embedded_resource",
      {
        description: "A prompt with a resource",
        arguments: { resourceUri: { description: "The URI of the resource", required: true } },
      },
      ({ resourceUri }) => [
        {
          role: "user",
          content: {
            type: "resource",
            resource: {
              uri: resourceUri,
              mimeType: "text/plain",
              text: "Embedded resource content for testing.",
            },
          },
        },
        { role: "user", content: { type: "text", text: "Please process the embedded resource above." } },
      ],
    )
    .prompt("test_prompt_with_image", { description: "A prompt with an image" }, () => [
      { role: "user", content: { type: "image", data: PNG, mimeType: "image/png" } },
      { role: "user", content: { type: "text", text: "Please analyze the image above." } },
    ])
    .prompt(
      "test_input_required_result_prompt",
      { description: "A prompt that elicits first" },
      async (_args, { ask }) => {
        const { content } = await ask.elicit(
          {
            message: "What context should the prompt use?",
            requestedSchema: { type: "object", properties: { context: { type: "string" } }, required: ["context"] },
          },
          { key: "user_context" },
        );
        return `Use this context: ${String(content?.["context"])}`;
      },
    );
}

export function addResources(server: Server): void {
  server
    .resource(
      "test://static-text",
      { name: "Static Text Resource", description: "Static text", mimeType: "text/plain" },
      () => "This is the content of the static text resource.",
    )
    .resource(
      "test://static-binary",
      { name: "Static Binary Resource", description: "Static bytes", mimeType: "image/png" },
      () => Buffer.from(PNG, "base64"),
    )
    .resource(
      "test://watched-resource",
      { name: "Watched Resource", description: "Text to subscribe to", mimeType: "text/plain" },
      () => "Watched resource content",
    )
    .template(
      "test://template/{id}/data",
      { name: "Resource Template", description: "Data by id", mimeType: "application/json" },
      ({ id }) => ({ id, templateTest: true, data: `Data for ID: ${id}` }),
    );
}
