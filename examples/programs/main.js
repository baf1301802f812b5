// Offers git as a tool, and calls it in an empty folder.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "catenary";
import { programs } from "catenary/programs";

const folder = mkdtempSync(join(tmpdir(), "catenary-example-"));
const server = programs({
  programs: ["git"],
  cwd: folder,
  include: ["git init --quiet", "git --no-pager status --short", "git show HEAD"],
});
const client = await connect(server);

try {
  const { tools } = await client.listTools();
  for (const { name, inputSchema } of tools) {
    console.log(`Tool ${name}`);
    console.log(
      `Arguments: ${Object.keys(inputSchema.properties ?? {})
        .slice(0, 4)
        .join(", ")}, ...`,
    );
  }
  await call({ _args: ["init", "--quiet"] });
  writeFileSync(join(folder, "notes.txt"), "Water the plants.\n");
  await call({ "no-pager": true, _args: ["status", "--short"] });
  await call({ _args: ["push", "--force"] });
  await call({ _args: ["show", "HEAD"] });
} finally {
  await client.close();
  await server.close();
  rmSync(folder, { recursive: true });
}

/** @param {Record<string, unknown>} args */
async function call(args) {
  const { content, isError } = await client.callTool("git", args);
  console.log(`\n${JSON.stringify(args)}${isError ? " failed" : ""}`);
  for (const block of content) if (block.type === "text") console.log(block.text);
}
