// What `up` and `serve` serve without a config: the sessions of --live, or the starter, which is a JavaScript session and
// the guide for a newcomer. Both are configs in memory, so that they are served, logged and restarted like any other.

import { resolve } from "node:path";
import { isOwnUrl } from "../../config/self-calls.ts";
import type { Config } from "../../config/index.ts";
import { loadConfigText } from "../../config/load.ts";
import { sandboxProblem } from "../../live/sandbox.ts";
import { parseLanguage } from "../commands/eval.ts";
import { findClientServers, likelyClient } from "../setup/client-servers.ts";
import { plural } from "../show/problems.ts";
import { CONFIG } from "../target/target.ts";
import { paint, ownCommand } from "../terminal/output.ts";
import { quoteWord } from "../terminal/text.ts";
import { countServers, createGuide } from "./guide.ts";
import { type Banner, clientEntry, consoleLine } from "./start.ts";

/** The name of the guide among the servers. */
const GUIDE = "catenary";

/** A config in memory, and what the banner says about it. */
export interface MemoryConfig {
  readonly config: Config;
  readonly source: string;
  /** The name for a client's config. */
  readonly name: string;
  readonly starter?: Starter;
}

/** Set for the starter. */
export interface Starter {
  /** Why there is no sandbox. */
  readonly problem: string | undefined;
}

/** Live sessions of one language. Throws a UsageError if there is no such language. */
export async function liveConfig(language: string, sandbox: boolean): Promise<MemoryConfig> {
  const { name } = parseLanguage(language, `--live ${language} is not a language`, "write one of");
  return { config: await memoryConfig(name, sandbox), source: `live sessions of ${name}`, name };
}

/** The starter. Its sessions are in a sandbox if this machine can have one. */
export async function starterConfig(): Promise<MemoryConfig> {
  const problem = await sandboxProblem();
  const sessions = await memoryConfig("js", problem === undefined);
  const [live] = sessions.upstreams.values();
  if (live === undefined) throw new Error("The starter has no session");
  const guide = createGuide();
  const entry = {
    ...live,
    name: GUIDE,
    kind: "guide",
    settings: {},
    secrets: [],
    resolve: async () => ({ target: guide }),
  };
  const { programs: _programs, sandbox: _sandbox, ...withoutProgram } = entry;
  return {
    config: { ...sessions, upstreams: new Map([...sessions.upstreams, [GUIDE, withoutProgram]]) },
    source: "a JavaScript session and the guide",
    name: "catenary",
    starter: { problem: problem?.message },
  };
}

/** What the starter prints: its address, what it serves, how to connect a client, and how to add servers. */
export async function starterLines(banner: Banner, { problem }: Starter): Promise<string[]> {
  const { url, token } = banner;
  const program = ownCommand();
  const { hostname: host, port } = new URL(url);
  const address = { host, port: Number(port || 80) };
  const sources = (await findClientServers(CONFIG)).map((source) => ({
    ...source,
    entries: source.entries.filter(([, entry]) => !isOwnUrl(entry["url"], address)),
  }));
  const count = countServers(sources);
  const titles = [...new Set(sources.filter(({ entries }) => entries.length > 0).map(({ title }) => title))];
  const sandbox =
    problem === undefined
      ? "in a sandbox: no network, none of your files"
      : `${paint("yellow", "not in a sandbox")}: code has your rights`;
  const kept = banner.isTokenKept === true ? "The token stays the same. " : "";
  const row = (title: string, text: string): string => `  ${paint("bold", title.padEnd(18))}${text}`;
  return [
    `Catenary is ready at ${paint("cyan", url)}`,
    ...(banner.console === undefined ? [] : [consoleLine(banner.console)]),
    `  js        JavaScript sessions that keep their state, ${sandbox}`,
    ...(problem === undefined ? [] : [`            ${problem}`]),
    `  ${GUIDE}  a guide: finds your MCP servers, explains how to add them and to connect clients`,
    "",
    "In another terminal, in this folder:",
    row("Connect a client", `${program} install ${await likelyClient()} --url ${url}`),
    row("  or paste", clientEntry(banner)),
    row("Try it", `${program} call ${url} evaluate-js ${quoteWord("code=6 * 7")}`),
    row(
      "Add your servers",
      count === 0
        ? `${program} add NAME COMMAND..., then start again`
        : `${program} import, then start again: ${plural(count, "server")} found in ${titles.join(", ")}`,
    ),
    ...(token === undefined
      ? []
      : ["", paint("dim", `${kept}Anyone who has the token can run code here. Ctrl-C stops the gateway.`)]),
  ];
}

/** As if it were in the config of this folder. */
async function memoryConfig(language: string, sandbox: boolean): Promise<Config> {
  const text = JSON.stringify({ mcpServers: { [language]: { live: language, sandbox } } });
  return loadConfigText(text, resolve(CONFIG));
}
