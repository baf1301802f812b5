// The tools of a Lisp session that load systems and files, and those that time and profile code: what each is called,
// what it takes, and what the model is told of it. They run the user's code, so they have a deadline, and may be tasks.

import type { Argument, GuestTool } from "../tool.ts";
import { PACKAGE } from "./tools.ts";

const SYSTEM: Argument = { type: "string", required: true, description: "Name of the ASDF system." };
const CODE: Argument = { type: "string", required: true, description: "One or more forms to run." };

const LOADING: readonly GuestTool[] = [
  {
    name: "load-system",
    title: "Load a system",
    description:
      "Load an ASDF system that is on this machine, compiling what needs it. For those on the network see quickload.",
    arguments: {
      "system-name": { type: "string", description: "Name of the system. Required, unless `system` is given." },
      system: { type: "string", description: "The same, under its other name." },
    },
    runsCode: true,
  },
  {
    name: "describe-system",
    title: "Describe a system",
    description: "Tell about an ASDF system: its description, author, license, file, dependencies and components.",
    arguments: { system: SYSTEM },
    readOnly: true,
    runsCode: true,
  },
  {
    name: "system-dependencies",
    title: "Dependencies of a system",
    description: "List what an ASDF system depends on, directly or in all.",
    arguments: {
      system: SYSTEM,
      transitive: { type: "boolean", default: false, description: "Also the dependencies of its dependencies." },
    },
    readOnly: true,
    runsCode: true,
  },
  {
    name: "list-local-systems",
    title: "List local systems",
    description: "List the ASDF systems that can be loaded here, with their files.",
    arguments: {},
    readOnly: true,
    runsCode: true,
  },
  {
    name: "find-system-file",
    title: "Find a system's file",
    description: "Tell in which .asd file a system is defined.",
    arguments: { system: SYSTEM },
    readOnly: true,
    runsCode: true,
  },
  {
    name: "quickload",
    title: "Load with Quicklisp",
    description:
      "Load a system with Quicklisp, fetching it where needed. Only where Quicklisp is loaded in the session.",
    arguments: {
      system: SYSTEM,
      verbose: { type: "boolean", default: false, description: "Also return what loading printed." },
    },
    runsCode: true,
  },
  {
    name: "quicklisp-search",
    title: "Search Quicklisp",
    description: "Find Quicklisp systems whose name contains a text. Only where Quicklisp is loaded in the session.",
    arguments: {
      pattern: { type: "string", required: true, description: "Part of a name, in any case." },
      limit: { type: "integer", default: 30, description: "At most so many names." },
    },
    readOnly: true,
    runsCode: true,
  },
  {
    name: "load-file",
    title: "Load a file",
    description:
      "Load a Lisp file into the session, as source or compiled first (nothing is left beside it). Warnings and what " +
      "it printed come back.",
    arguments: {
      path: { type: "string", required: true, description: "Path of the file; ~/ is your home folder." },
      compile: { type: "boolean", default: false, description: "Compile it first." },
      package: PACKAGE,
    },
    runsCode: true,
  },
];

const MEASURING: readonly GuestTool[] = [
  {
    name: "time-execution",
    title: "Time code",
    description: "Run code once and tell real time, run time, GC time and bytes allocated, with its values and output.",
    arguments: { code: CODE, package: PACKAGE },
    runsCode: true,
  },
  {
    name: "profile-code",
    title: "Profile code",
    description:
      "Run code under the statistical profiler and report in which functions the time went (or the allocation). The " +
      "code should run for at least half a second, or there are too few samples.",
    arguments: {
      code: CODE,
      mode: {
        type: "string",
        choices: ["cpu", "time", "alloc"],
        default: "cpu",
        description: "What is sampled: processor time, wall-clock time, or allocation.",
      },
      "max-samples": { type: "integer", default: 1000, description: "At most so many samples." },
      "sample-interval": { type: "number", default: 0.01, description: "Seconds between two samples." },
      "report-type": {
        type: "string",
        choices: ["flat", "graph"],
        default: "flat",
        description: "A table of functions, or the call graph too.",
      },
      package: PACKAGE,
    },
    runsCode: true,
  },
  {
    name: "profile-functions",
    title: "Profile functions",
    description:
      "Count calls and time of named functions, exactly: `start` with functions, run code with evaluate-lisp, then " +
      "`report`; `reset` sets the counts to zero, `status` says what is profiled, `stop` ends it.",
    arguments: {
      action: {
        type: "string",
        required: true,
        choices: ["start", "stop", "report", "reset", "status"],
        description: "What to do.",
      },
      functions: { type: "strings", description: "For `start`: names of the functions." },
      package: PACKAGE,
    },
  },
  {
    name: "memory-report",
    title: "Report memory",
    description: "Tell how much memory the image uses, by kind of object, and what the garbage collector did.",
    arguments: {
      verbosity: {
        type: "string",
        choices: ["default", "detailed", "minimal"],
        default: "default",
        description: "How much is told.",
      },
      "gc-first": { type: "boolean", default: false, description: "Collect all garbage before." },
    },
    readOnly: true,
    runsCode: true,
  },
  {
    name: "allocation-profile",
    title: "Profile allocation",
    description: "Run code and report which functions allocated memory, and how many bytes in all.",
    arguments: {
      code: CODE,
      "max-samples": { type: "integer", default: 1000, description: "At most so many samples." },
      package: PACKAGE,
    },
    runsCode: true,
  },
];

export const RUNNING_TOOLS: readonly GuestTool[] = [...LOADING, ...MEASURING];
