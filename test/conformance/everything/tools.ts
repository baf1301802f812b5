// Tools that answer by themselves: every kind of content, errors, logs and progress, the schemas that must arrive
// as they were written, a header that mirrors an argument, and a call whose stream is ended before its result.
// The simplest comes first: a check calls whichever tool is listed first, with no arguments.

import { setTimeout as sleep } from "node:timers/promises";
import type { Server } from "../../../src/index.ts";
import { PNG, RICH_SCHEMA, WAV } from "./samples.ts";

/** Between two messages, so that they come one by one. */
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
      throw new Error("This tool fails on purpose");
    })
    .tool("test_reconnection", { description: "Ends its stream before its result" }, async (_args, { hangUp }) => {
      hangUp(PAUSE_MS);
      await sleep(2 * PAUSE_MS);
      return "The result came after the stream had been ended";
    })
    .tool(
      "json_schema_2020_12_tool",
      { description: "Tool with JSON Schema 2020-12 features", input: RICH_SCHEMA },
      (args) => JSON.stringify(args),
    )
    .tool(
      "test_x_mcp_header",
      { description: "Takes an argument that a header mirrors", input: REGION },
      ({ region }) => `Looked in ${region}`,
    );
}

function addContent(server: Server): void {
  server
    .tool("test_simple_text", { description: "A text" }, () => "This is a simple text response for testing.")
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
    .tool("test_multiple_content_types", { description: "A text, an image and a resource" }, () => [
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
      for (const words of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
        log("info", words);
        await sleep(PAUSE_MS);
      }
      return "Logged three times";
    })
    .tool("test_logging_tool", { description: "Logs once, to whoever wants it" }, (_args, { log }) => {
      log("info", "A message for those who asked for one");
      return "Logged once";
    })
    .tool("test_tool_with_progress", { description: "Tells how far it has come" }, async (_args, { progress }) => {
      for (const reached of [0, 50, 100]) {
        progress(reached, 100, `${reached} of 100`);
        await sleep(PAUSE_MS);
      }
      return "Reached 100 of 100";
    });
}

// Tools that change what the server offers while it runs, so that whoever listens hears of it: each call adds one
// more tool or prompt where there is none, and takes it away where there is one.


export function addChanges(server: Server): void {
  server
    .tool("test_trigger_tool_change", { description: "Changes the list of tools" }, () => {
      if (server.removeTool("test_passing_tool")) return "A tool is gone";
      server.tool("test_passing_tool", { description: "Comes and goes" }, () => "Still here");
      return "A tool has come";
    })
    .tool("test_trigger_prompt_change", { description: "Changes the list of prompts" }, () => {
      if (server.removePrompt("test_passing_prompt")) return "A prompt is gone";
      server.prompt("test_passing_prompt", { description: "Comes and goes" }, () => "Still here");
      return "A prompt has come";
    });
}
