// Tools that change what the server offers while it runs, so that whoever listens hears of it: each call adds one
// more tool or prompt where there is none, and takes it away where there is one.

import type { Server } from "../../../src/index.ts";

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
