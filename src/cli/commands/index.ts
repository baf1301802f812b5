// All commands, in the order of `catenary --help`. Their summaries are here, since each command is imported only when it
// is used.

import type { Command, CommandEntry } from "../define.ts";

const SUMMARIES = {
  up: "Starts a local gateway for all servers of a config.",
  serve: "Serves the gateway of a config, or the server of a module, on stdio or HTTP.",
  run: "Runs one server, or signs in to a URL, so that any client can use it.",
  status: "Shows the gateways that run, and their servers.",
  logs: "Prints the log of a running gateway, or of one server.",
  restart: "Starts a server of a running gateway anew.",
  pins: "Shows and approves changed definitions of tools, for the middleware pin.",
  check: "Checks a config and explains its problems.",
  doctor: "Finds out why a server does not work, and what to do.",
  add: "Writes a server into a config.",
  remove: "Removes a server from a config.",
  import: "Brings the servers of a client's config into ours.",
  install: "Writes the gateway into the config of a client, such as cursor.",
  uninstall: "Removes the gateway from the config of a client.",
  login: "Signs in to a server that asks for it.",
  logout: "Deletes and revokes the stored tokens of a server.",
  auth: "Lists the servers with stored tokens.",
  tools: "Lists the tools of a server, or shows one.",
  types: "Writes the tools of a server as TypeScript declarations.",
  call: "Calls a tool.",
  resources: "Lists the resources of a server.",
  read: "Reads a resource.",
  prompts: "Lists the prompts of a server, or shows one.",
  prompt: "Gets a prompt.",
  eval: "Evaluates code in a live session.",
  repl: "A prompt in a live session, your own or that of a running server.",
  completion: "Prints a script with which a shell completes our commands.",
};

const LOADERS: Readonly<Record<keyof typeof SUMMARIES, () => Promise<Command>>> = {
  up: async () => (await import("./serve.ts")).upCommand,
  serve: async () => (await import("./serve.ts")).serveCommand,
  run: async () => (await import("./run.ts")).runCommand,
  status: async () => (await import("./status.ts")).statusCommand,
  logs: async () => (await import("./status.ts")).logsCommand,
  restart: async () => (await import("./status.ts")).restartCommand,
  pins: async () => (await import("./pins.ts")).pinsCommand,
  check: async () => (await import("./check.ts")).checkCommand,
  doctor: async () => (await import("./doctor.ts")).doctorCommand,
  add: async () => (await import("./add.ts")).addCommand,
  remove: async () => (await import("./add.ts")).removeCommand,
  import: async () => (await import("./import.ts")).importCommand,
  install: async () => (await import("./install.ts")).installCommand,
  uninstall: async () => (await import("./install.ts")).uninstallCommand,
  login: async () => (await import("./login.ts")).loginCommand,
  logout: async () => (await import("./login.ts")).logoutCommand,
  auth: async () => (await import("./login.ts")).authCommand,
  tools: async () => (await import("./list.ts")).toolsCommand,
  types: async () => (await import("./types.ts")).typesCommand,
  call: async () => (await import("./call.ts")).callCommand,
  resources: async () => (await import("./list.ts")).resourcesCommand,
  read: async () => (await import("./call.ts")).readCommand,
  prompts: async () => (await import("./list.ts")).promptsCommand,
  prompt: async () => (await import("./call.ts")).promptCommand,
  eval: async () => (await import("./eval.ts")).evalCommand,
  repl: async () => (await import("./repl.ts")).replCommand,
  completion: async () => (await import("./completion.ts")).completionCommand(COMMANDS),
};

export const COMMANDS: Readonly<Record<string, CommandEntry>> = Object.fromEntries(
  Object.entries(SUMMARIES).map(([name, summary]) => [
    name,
    { summary, load: LOADERS[name as keyof typeof SUMMARIES] },
  ]),
);
