// The filesystem server of the MCP project behind middleware: it may read, it may write if the user allows it, and all
// its other tools do not exist for the client. It gets a new folder, which is removed at the end.

import { mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { connect } from "catenary";
import { createGateway, loadConfig } from "catenary/config";

const folder = await realpath(await mkdtemp(join(tmpdir(), "guarded-")));
await writeFile(join(folder, "tea.txt"), "Darjeeling");

const config = await loadConfig(fileURLToPath(new URL("catenary.json", import.meta.url)), {
  env: { ...process.env, GUARDED_FOLDER: folder },
});
const gateway = await createGateway(config);
const client = await connect(gateway, {
  // This user declines everything about coffee.
  elicit: ({ message }) => {
    const isRefused = message.includes("coffee");
    console.log(`Asked for permission, which is ${isRefused ? "refused" : "given"}`);
    return isRefused ? { action: "decline" } : { action: "accept", content: {} };
  },
});

try {
  const names = [];
  for await (const { name } of client.tools()) names.push(name);
  console.log(`Tools: ${names.join(", ")}`);
  await call("read_text_file", { path: join(folder, "tea.txt") });
  await call("write_file", { path: join(folder, "milk.txt"), content: "a little" });
  await call("write_file", { path: join(folder, "coffee.txt"), content: "much" });
  await call("read_text_file", { path: join(folder, "../outside.txt") });
  await call("edit_file", { path: join(folder, "tea.txt"), edits: [] });
  await call("move_file", { source: join(folder, "tea.txt"), destination: join(folder, "gone.txt") });
  console.log(`milk.txt has "${await readFile(join(folder, "milk.txt"), "utf8")}"`);
} finally {
  await client.close();
  await gateway.close();
  await rm(folder, { recursive: true });
}

/** Prints the first line of the result, or the error, without the path of the folder. */
async function call(name, args) {
  const shown = `${name} ${basename(args.path ?? args.source)}`;
  try {
    const { content, isError } = await client.callTool(name, args);
    const [line = ""] = content[0].text.replaceAll(folder, "").split("\n");
    console.log(`${shown}: ${isError ? line.replace(/:.*/, "") : line}`);
  } catch (error) {
    console.log(`${shown}: ${error.message}`);
  }
}
