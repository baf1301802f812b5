// Tools that send no request to the client: every type of content, errors, logs and progress, schemas that must arrive
// unchanged, a header that mirrors an argument, a stream that ends before its result, and changes of the lists. The
// simplest comes first, because a check calls the first listed tool without arguments.

import { setTimeout as sleep } from "node:timers/promises";
import { UserError, type Server } from "../../../src/index.ts";
import { PNG, RICH_SCHEMA, WAV } from "./samples.ts";

/** Between two messages, so that they arrive separately. */
const PAUSE_MS = 50;

const IMAGE = { type: "image", data: PNG, mimeType: "image/png" } as const;
const REGION = {
  type: "object",
  properties: { region: { type: "string", description: "Where to look", "x-mcp-header": "Region" } },
  required: ["region"],
} as const;

export function addTools(server: Server): void {
  addContent(server);
  addMessages(server);
  server
    .tool("test_error_handling", { description: "Always fails" }, () => {
      throw new UserError("This tool fails on purpose");
    })
    .tool("test_reconnection", { description: "Ends its stream before its result" }, async (_args, { hangUp }) => {
      hangUp(PAUSE_MS);
      await sleep(2 * PAUSE_MS);
      return "The result came after the stream had ended";
    })
    .tool(
      "json_schema_2020_12_tool",
      { description: "Tool with JSON Schema 2020-12 features", input: RICH_SCHEMA },
      (args) => JSON.stringify(args),
    )
    .tool(
      "test_x_mcp_header",
      { description: "Has an argument that a header mirrors", input: REGION },
      ({ region }) => `Looked in ${region}`,
    );
}

function addContent(server: Server): void {
  server
    .tool("test_simple_text", { description: "Text" }, () => "This is a simple text response for testing.")
    .tool("test_image_content", { description: "An image" }, () => [IMAGE])
    .tool("test_audio_content", { description: "A sound" }, () => [{ type: "audio", data: WAV, mimeType: "audio/wav" }])
    .tool("test_embedded_resource", { description: "A resource inside the result" }, () => [
      {
        type: "resource",
        resource: {
          uri: "test://embedded-resource",
          mimeType: "text/plain",
          text: "This is an embedded resource content.",
        },
      },
    ])
    .tool("test_multiple_content_types", { description: "Text, an image and a resource" }, () => [
      { type: "text", text: "Multiple content types test:" },
      IMAGE,
      {
        type: "resource",
        resource: {
          uri: "test://mixed-content-resource",
          mimeType: "application/json",
          text: JSON.stringify({ test: "data", value: 123 }),
        },
      },
    ]);
}

function addMessages(server: Server): void {
  server
    .tool("test_tool_with_logging", { description: "Logs while it works" }, async (_args, { log }) => {
      for (const message of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
        log("info", message);
        await sleep(PAUSE_MS);
      }
      return "Logged three times";
    })
    .tool("test_logging_tool", { description: "Logs once" }, (_args, { log }) => {
      log("info", "A message at level info");
      return "Logged once";
    })
    .tool("test_tool_with_progress", { description: "Reports progress" }, async (_args, { progress }) => {
      for (const reached of [0, 50, 100]) {
        progress(reached, 100, `${reached} of 100`);
        await sleep(PAUSE_MS);
      }
      return "Reached 100 of 100";
    });
}

/** Each call adds a tool or prompt, or removes it where it exists, so that subscriptions are notified. */
export function addListChanges(server: Server): void {
  server
    .tool("test_trigger_tool_change", { description: "Changes the list of tools" }, () => {
      if (server.removeTool("test_temporary_tool")) return "Removed a tool";
      server.tool("test_temporary_tool", { description: "Added and removed by a tool" }, () => "Still here");
      return "Added a tool";
    })
    .tool("test_trigger_prompt_change", { description: "Changes the list of prompts" }, () => {
      if (server.removePrompt("test_temporary_prompt")) return "Removed a prompt";
      server.prompt("test_temporary_prompt", { description: "Added and removed by a tool" }, () => "Still here");
      return "Added a prompt";
    });
}
