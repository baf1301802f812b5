// `npm run docs` writes what the pages of docs/ have from the declarations of options and commands, and draws the chart of
// the figures on the page about performance.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { drawChart } from "../../bench/chart.ts";
import { readRatios } from "../../bench/page.ts";
import { MIDDLEWARE } from "../../src/config/built-in.ts";
import { withRoutes } from "./console-routes.ts";
import { cliReference } from "./cli-reference.ts";
import { withOptions } from "./option-tables.ts";
import { readPage, ROOT } from "./page.ts";

async function write(page: string, change: (text: string) => string | Promise<string>): Promise<void> {
  const path = join(ROOT, page);
  writeFileSync(path, await change(readFileSync(path, "utf8")));
}

await write("docs/reference/cli.md", cliReference);
await write("docs/reference/console-api.md", withRoutes);
for (const [name, { definition }] of MIDDLEWARE) {
  await write(`docs/middleware/${name}.md`, (page) => withOptions(page, definition.options));
}
await write("docs/speed.svg", () => drawChart(readRatios(readPage("docs/reference/performance.md"), "calls")));
