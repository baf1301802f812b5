// All commands, in the order of `catenary --help`.

import type { CommandEntry } from "../command.ts";

export const COMMANDS: Readonly<Record<string, CommandEntry>> = {
  up: {
    summary: "start a local gateway for all servers of a config",
    load: async () => (await import("./serve.ts")).upCommand,
  },
  serve: {
    summary: "serve the gateway of a config, or the server of a module, on stdio or HTTP",
    load: async () => (await import("./serve.ts")).serveCommand,
  },
  run: {
    summary: "run one server, or sign in to a URL, so that any client can use it",
    load: async () => (await import("./run.ts")).runCommand,
  },
  status: {
    summary: "show the gateways that run, and their servers",
    load: async () => (await import("./status.ts")).statusCommand,
  },
  logs: {
    summary: "show the log of a running gateway, or of one server",
    load: async () => (await import("./status.ts")).logsCommand,
  },
  restart: {
    summary: "start a server of a running gateway anew",
    load: async () => (await import("./status.ts")).restartCommand,
  },
  pins: {
    summary: "show and approve changed definitions of tools, for the middleware pin",
    load: async () => (await import("./pins.ts")).pinsCommand,
  },
  check: {
    summary: "check a config and explain its problems",
    load: async () => (await import("./check.ts")).checkCommand,
  },
  doctor: {
    summary: "find out why a server does not work, and what to do",
    load: async () => (await import("./doctor.ts")).doctorCommand,
  },
  add: {
    summary: "write a server into a config",
    load: async () => (await import("./add.ts")).addCommand,
  },
  remove: {
    summary: "remove a server from a config",
    load: async () => (await import("./add.ts")).removeCommand,
  },
  import: {
    summary: "bring the servers of a client's config into ours",
    load: async () => (await import("./import.ts")).importCommand,
  },
  install: {
    summary: "write the gateway into the config of a client, such as cursor",
    load: async () => (await import("./install.ts")).installCommand,
  },
  uninstall: {
    summary: "remove the gateway from the config of a client",
    load: async () => (await import("./install.ts")).uninstallCommand,
  },
  login: {
    summary: "sign in to a server that asks for it",
    load: async () => (await import("./login.ts")).loginCommand,
  },
  logout: {
    summary: "delete the stored tokens of a server",
    load: async () => (await import("./login.ts")).logoutCommand,
  },
  auth: {
    summary: "list the servers with stored tokens",
    load: async () => (await import("./login.ts")).authCommand,
  },
  tools: {
    summary: "list the tools of a server, or show one",
    load: async () => (await import("./list.ts")).toolsCommand,
  },
  types: {
    summary: "write the tools of a server as TypeScript declarations",
    load: async () => (await import("./types.ts")).typesCommand,
  },
  call: {
    summary: "call a tool",
    load: async () => (await import("./call.ts")).callCommand,
  },
  resources: {
    summary: "list the resources of a server",
    load: async () => (await import("./list.ts")).resourcesCommand,
  },
  read: {
    summary: "read a resource",
    load: async () => (await import("./call.ts")).readCommand,
  },
  prompts: {
    summary: "list the prompts of a server, or show one",
    load: async () => (await import("./list.ts")).promptsCommand,
  },
  prompt: {
    summary: "get a prompt",
    load: async () => (await import("./call.ts")).promptCommand,
  },
  eval: {
    summary: "evaluate code in a live session",
    load: async () => (await import("./eval.ts")).evalCommand,
  },
  repl: {
    summary: "a prompt in a live session, your own or that of a running server",
    load: async () => (await import("./repl.ts")).replCommand,
  },
  completion: {
    summary: "print a script with which a shell completes our commands",
    load: async () => (await import("./completion.ts")).completionCommand(COMMANDS),
  },
};
