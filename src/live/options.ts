// The options of live sessions and of code mode, for code and for configs. What only one language has is in its entry.

import {
  boolean,
  choice,
  count,
  documented,
  either,
  msOrZero,
  number,
  object,
  objectOrFlag,
  path,
  paths,
  secretMap,
  strings,
  text,
  type OptionsOf,
} from "../core/fields.ts";
import { DEFAULT_LIMITS, LIMIT_BOUNDS } from "./runtime.ts";

export const LIMITS = {
  timeoutMs: number("Milliseconds for one evaluation; 0: no limit.", LIMIT_BOUNDS.timeoutMs, "milliseconds").or(
    DEFAULT_LIMITS.timeoutMs,
  ),
  memoryMb: number("Maximum megabytes of memory of one live session.", LIMIT_BOUNDS.memoryMb, "whole megabytes").or(
    DEFAULT_LIMITS.memoryMb,
  ),
  outputChars: number(
    "Maximum characters of output in the result of an evaluation, for each of stdout and stderr.",
    LIMIT_BOUNDS.outputChars,
    "a whole number of characters",
  ).or(DEFAULT_LIMITS.outputChars),
  valueChars: number(
    "Maximum characters of a value in the result of an evaluation.",
    LIMIT_BOUNDS.valueChars,
    "a whole number of characters",
  ).or(DEFAULT_LIMITS.valueChars),
  printLength: number("Maximum printed elements of a collection.", LIMIT_BOUNDS.printLength).or(
    DEFAULT_LIMITS.printLength,
  ),
  printDepth: number("Maximum printed depth of a value.", LIMIT_BOUNDS.printDepth).or(DEFAULT_LIMITS.printDepth),
  errorHoldMs: number(
    "Milliseconds for which an evaluation waits at an error, so that its frames and restarts can be used; 0: not at all.",
    LIMIT_BOUNDS.errorHoldMs,
    "milliseconds",
  ).or(DEFAULT_LIMITS.errorHoldMs),
};

export const SANDBOX = {
  network: boolean("Whether the network may be used, with all services that listen on this machine.").or(false),
  read: paths("Files and folders that may be read, relative to this file. Default: none."),
  write: paths("Files and folders that may be changed, relative to this file. Default: none."),
  processes: count("Maximum processes and threads of a session at once.").or(50),
  diskMb: count("Maximum megabytes of files in the private folder.").or(256),
};

/**
 * What a session in a sandbox may use beyond its own folder and the programs of the system. Links in paths are followed
 * when the server is created, and not again.
 */
export type SandboxOptions = OptionsOf<typeof SANDBOX>;

export const LIVE = {
  name: text("The name of the server."),
  limits: object(
    "The limits of each session. One that is set here is also the most that a caller can choose; callers can change the others.",
    LIMITS,
  ),
  maxSessions: count("How many sessions may have a process at once.").or(32),
  idleMs: msOrZero("Milliseconds after which the process of an idle session is ended; 0: never.").or(
    86_400_000,
    "24 hours",
  ),
  sandbox: objectOrFlag(
    "Runs live sessions in a sandbox (bubblewrap, Linux only): no network, no files but those of the system's programs, and a private folder in memory. true, or an object with what they may use. Default: false.",
    SANDBOX,
  ),
};

/** Options of live servers in every language. */
export type LiveOptions = OptionsOf<typeof LIVE>;

export const GUEST = {
  cwd: path("The folder of the processes, to which paths in code are relative. Default: that of this process."),
  env: secretMap("Variables to add to the environment that sessions inherit."),
  inheritEnv: either(
    "Which variables of this process sessions inherit, as for upstream(). Default: all but the secrets of Catenary.",
    boolean(""),
    strings(""),
  ),
  command: text("The program that runs the sessions. Default: that of the language."),
};

/** The options of what runs the sessions, in every language. */
export type GuestOptions = OptionsOf<typeof GUEST>;

/** The options of sessions that a config describes in other words for code mode. */
export const CODE_SESSIONS = {
  timeoutMs: documented(
    "Milliseconds that a run may take, without the time in which it waits for an answer of the user.",
    LIMITS.timeoutMs,
  ).or(LIMITS.timeoutMs.default),
  sandbox: documented(
    "Where the code runs: true, in a sandbox (bubblewrap, Linux only) without network and files; an object, with what it may use; or false, without a sandbox. Default: true.",
    LIVE.sandbox,
  ),
  maxSessions: LIVE.maxSessions,
  idleMs: LIVE.idleMs,
  inheritEnv: documented(
    "Which variables of the gateway's environment the sessions inherit: true for all, or an array of names.",
    GUEST.inheritEnv,
  ).or(false),
};

export const CODE = {
  include: strings(
    "The tools that stay in the list beside those of code mode; `*` matches any characters. Default: none.",
  ),
  confirm: choice(
    "destructive: the user is asked before code calls tools that say that they may destroy something. Default: such calls run without a question.",
    ["destructive"],
  ),
  maxCalls: count("Maximum calls of tools in one run.").or(100),
  maxParallel: count("Maximum calls of tools that run at once; others wait.").or(8),
  maxResultBytes: count("Maximum bytes of the results of all calls in one run.").or(10_000_000),
};

/** What code in code mode may do. */
export type CodeOptions = OptionsOf<typeof CODE>;
