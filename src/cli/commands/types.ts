// `catenary types TARGET`: writes the tools of a server as TypeScript declarations, for `connect<Tools>()`. What a server
// says is untrusted, so every name and value is written as a JSON string, and descriptions cannot end their comment.

import { commentText, propertyKey, TypeWriter, type TypeLimits } from "../../live/declarations.ts";
import type { Tool } from "../../protocol/model/index.ts";
import { EXIT, withKey } from "../command.ts";
import type { Command } from "../define.ts";
import { targetCommand } from "../target/target.ts";
import { withClient } from "../target/with-client.ts";
import { printJson, printTrusted } from "../terminal/output.ts";

export const typesCommand: Command = targetCommand({
  name: "types",
  about: `Writes the tools of a server as TypeScript declarations, for a typed client:

  catenary types http://127.0.0.1:3000/mcp > tools.ts

  import type { Tools } from "./tools.ts";
  const client = await connect<Tools>("http://127.0.0.1:3000/mcp");`,
  flags: {},
  run: (line) =>
    withClient(line, async ({ client, callOptions, busy, done }) => {
      busy("Listing tools");
      const { tools } = await client.listTools(callOptions);
      const text = declarations(withKey<Tool>(tools, "name"), client.server?.name);
      done();
      if (line.values.json === true) printJson({ declarations: text });
      else printTrusted(text);
      return EXIT.ok;
    }),
});

/** A program reads these, so only what could go on without end is cut. */
const LIMITS: TypeLimits = {
  depth: 20,
  properties: 10_000,
  choices: 10_000,
  comment: 1_000,
  aliases: 1_000,
  total: 10_000_000,
};

/** A module with one interface, which has a property for each tool. */
export function declarations(tools: readonly Tool[], server = "unknown"): string {
  const writer = new TypeWriter(LIMITS, true);
  const entries = tools.map(({ name, description, inputSchema, outputSchema }) => {
    const text = commentText(description ?? "", MAX_DESCRIPTION);
    return `${text === "" ? "" : `  /** ${text} */\n`}  readonly ${propertyKey(name)}: {
    readonly input: ${writer.write(inputSchema, 2)};
    readonly output: ${outputSchema === undefined ? "unknown" : writer.write(outputSchema, 2)};
  };\n`;
  });
  const types = writer.aliases.map((alias) => `\n${alias}\n`).join("");
  return `// The tools of the server ${JSON.stringify(server)}, written by \`catenary types\`.\n${types}\nexport interface Tools {\n${entries.join("")}}\n`;
}

const MAX_DESCRIPTION = 10_000;
