// Runs the house rules on the real source tree. The second half runs each rule on a bad sample, to show that it can
// fail.

import { readFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { ISOLATED } from "../vitest.config.ts";
import { REVISIONS } from "../src/protocol/revisions/index.ts";
import { castsIn } from "./support/house/casts.ts";
import {
  dangerFaults,
  headerFaults,
  importCycles,
  importFaults,
  loadedBy,
  longerThan,
  MAX_LINES,
  MAX_TEST_LINES,
  packageFaults,
  revisionFaults,
  secondHeaders,
  sentenceReaders,
  type Exception,
} from "./support/house/rules.ts";
import { importsOf, readSources, withoutComments, type SourceFile } from "./support/house/source.ts";

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const SOURCES = readSources(ROOT, "src");
const NAMES = REVISIONS.map((revision) => revision.name);

const manifest = JSON.parse(readFileSync(`${ROOT}/package.json`, "utf8")) as Record<
  "dependencies" | "peerDependencies",
  Record<string, string> | undefined
>;
const DEPENDENCIES = [
  ...Object.keys(manifest.dependencies ?? {}),
  ...Object.keys(manifest.peerDependencies ?? {}),
  // Those whose code is in dist (build.js).
  ...(readFileSync(`${ROOT}/dist/THIRD-PARTY-LICENSES.txt`, "utf8").match(/^\S+(?= \d+\.\d+\.\d+ \()/gm) ?? []),
];

/** Each entry says why the construct is safe there. */
const EXCEPTIONS: readonly Exception[] = [
  {
    file: "src/server/call-context.ts",
    what: "Object.assign(",
    why: "adds the named forms to the function `ask`; both sides are our own objects",
  },
  {
    file: "src/server/server.ts",
    what: "Object.assign(",
    why: "adds the methods of a server to its handler function; both sides are our own objects",
  },
];

/** How many casts the folders of the engine may have, and how many of them `as unknown as`. Lower it, never raise it. */
const MAX_CASTS = 102;
const MAX_DOUBLE_CASTS = 14;

/** The files that look for words in what is said to people, and who says it there. */
const SENTENCES_OF_OTHERS: Readonly<Record<string, string>> = {
  "src/chain/router/failures.ts": "servers, which have many codes for a resource that does not exist",
  "src/cli/commands/completion.ts": "the usage of our commands, as a grammar",
  "src/cli/serve/module.ts": "Node",
  "src/cli/serve/upstream-report.ts": "servers, whose repeated lines are left out",
  "src/cli/show/failures.ts": "servers, whose `data.details` the message may have already",
  "src/cli/show/saver.ts": "no sentence: the hint is the URI that a file is named after",
  "src/cli/terminal/background-echo.ts":
    "a session, in a text that goes to all clients alike; the label begins a part of it",
  "src/cli/terminal/output.ts": "us: it prints commands as the user starts them, and decides nothing",
  "src/client/calls.ts": "servers, whose status of a task the error may have already",
  "src/client/command.ts": "servers, whose stderr the error may have already",
  "src/config/document.ts": "the parser of TOML",
  "src/http/client/http-connection.ts": "servers and proxies that refuse a host",
  "src/http/client/session.ts": "servers that have forgotten a session",
  "src/live/js/conditions.ts": "Node",
  "src/live/js/inspect.ts": "Node, which prints values",
  "src/live/js/parse.ts": "sucrase and acorn",
  "src/live/js/test-run.ts": "Node and its test runner",
  "src/live/lisp/index.ts": "SBCL",
  "src/live/output.ts": "V8 and SBCL, without memory",
  "src/live/sandbox.ts": "bubblewrap",
  "src/live/smalltalk/amber-printer.ts": "Amber, which prints values",
  "src/live/smalltalk/amber-workspace.ts": "Amber and V8",
  "src/live/smalltalk/attach-guest.ts": "an image",
  "src/live/smalltalk/gst-source.ts": "code: a message is what Smalltalk sends",
  "src/modules/typescript.ts": "sucrase",
  "src/process/descriptors.ts": "Linux",
  "src/process/start-advice.ts": "npm, Node and servers that do not start",
  "src/programs/help.ts": "programs, in their help",
  "src/programs/index.ts": "programs, in their help",
  "src/protocol/compat-documents.ts": "servers and the code of users, whose errors a document writes in another way",
  "src/protocol/errors.ts": "programs, Node, ajv and other schema libraries, whose output, paths and issues are quoted",
  "src/tools/interpreted-schema.ts": "the package that checks schemas",
  "src/tools/schema-kind.ts": "schema libraries, whose issues may begin with the path",
  "src/transport/start-failure.ts": "programs that do not start; one of them may be ours, which begins with its name",
};

it("the source tree is found", () => {
  expect(SOURCES.length).toBeGreaterThan(100);
  expect(NAMES).toHaveLength(5);
});

it("the source tree imports down the layers only", () => {
  expect(importFaults(SOURCES)).toEqual([]);
});

it("the source tree has no import cycle, not even of types", () => {
  expect(importCycles(SOURCES)).toEqual([]);
});

it("the source tree imports no package that it does not depend on", () => {
  expect(packageFaults(SOURCES, DEPENDENCIES)).toEqual([]);
});

it("the source tree names revisions only in protocol/revisions/", () => {
  expect(revisionFaults(SOURCES, NAMES)).toEqual([]);
});

it("the source tree has no file over the limit of lines", () => {
  expect(longerThan(MAX_LINES, MAX_TEST_LINES, SOURCES)).toEqual([]);
});

it("the source tree has few casts in the engine", () => {
  const { all, double } = castsIn(SOURCES);
  expect(all.length, all.join("\n")).toBeLessThanOrEqual(MAX_CASTS);
  expect(double.length, double.join("\n")).toBeLessThanOrEqual(MAX_DOUBLE_CASTS);
});

it("the source tree begins every file with a comment", () => {
  expect(headerFaults(SOURCES)).toEqual([]);
});

it("the source tree has no file that is about a second thing from a comment in its middle on", () => {
  expect(secondHeaders(SOURCES)).toEqual([]);
});

it("the source tree loads no package from its main entry, and no revisions", () => {
  const { files, outside } = loadedBy("src/index.ts", SOURCES);
  expect(outside).toEqual([]);
  expect(files.size).toBeGreaterThan(10);
  expect([...files].filter((file) => file.startsWith("src/protocol/revisions/index"))).toEqual([]);
});

it("the source tree replaces modules, counts timers and advances to the next timer only in tests that do not share modules", () => {
  const replacing = SOURCES.filter(({ text }) =>
    /^vi\.mock\(|vi\.(?:getTimerCount|advanceTimersToNextTimer\w*)\(|vi\.spyOn\(globalThis, "set/m.test(text),
  );
  expect(replacing.length).toBeGreaterThan(0);
  expect(replacing.map(({ path }) => path).filter((path) => !ISOLATED.includes(path))).toEqual([]);
});

it("the source tree starts programs only where they do not inherit descriptors, and in guests, which have none", () => {
  const isProduct = ({ path }: SourceFile): boolean => !path.endsWith(".test.ts");
  const starting = SOURCES.filter(isProduct).filter(({ text }) => withoutComments(text).includes("node:child_process"));
  expect(starting.map(({ path }) => path).toSorted()).toEqual([
    "src/auth/oauth/browser.ts",
    "src/live/js/test-run.ts",
    "src/live/smalltalk/image-bridge.ts",
    "src/process/child.ts",
    "src/process/guardian.ts",
  ]);
});

it("the source tree reads sentences only where other programs wrote them", () => {
  // What we say ourselves has fields: see Hint and ConnectionError in src/core/errors.ts.
  expect(sentenceReaders(SOURCES)).toEqual(Object.keys(SENTENCES_OF_OTHERS));
});

it("the source tree never turns data into code", () => {
  expect(dangerFaults(SOURCES, EXCEPTIONS)).toEqual([]);
});

const file = (path: string, text: string): SourceFile => ({ path, text });

it("the rules find imports of every form, and none in comments, strings and templates", () => {
  const text = [
    `// import "./comment.ts";`,
    `/* export * from "./block.ts"; */`,
    `import "./bare.ts";`,
    `import one, { two } from "./one.ts";`,
    `import type { Three } from "./three.ts";`,
    `import {`,
    `  four,`,
    `} from './four.ts';`,
    `export * from "./all.ts";`,
    `export type { Six } from "./six.ts";`,
    `export { seven as eight } from "./seven.ts";`,
    `import * as nine from "nine";`,
    `const text = "import x from './string.ts'";`,
    "const words = `\nimport \"./template.ts\";\n${await import('./late.ts')} // `;",
    `const pattern = /["'\`/]/; // import "./after.ts"`,
    `import ten from "./ten.ts";`,
  ].join("\n");
  expect(importsOf(text).map(({ specifier, kind }) => `${kind} ${specifier}`)).toEqual([
    "static ./bare.ts",
    "static ./one.ts",
    "type ./three.ts",
    "static ./four.ts",
    "static ./all.ts",
    "type ./six.ts",
    "static ./seven.ts",
    "static nine",
    "static ./ten.ts",
    "late ./late.ts",
  ]);
});

it("the rules keep the lines of a text whose comments they blank", () => {
  const text = 'const a = "// no"; // yes\n/* two\nlines */ const b = a / 2 / 1;\n';
  expect(withoutComments(text)).toBe('const a = "// no";       \n      \n         const b = a / 2 / 1;\n');
});

it("the rules name the file, the import and the rule of a forbidden import", () => {
  expect(
    importFaults([
      file("src/server/tools.ts", `import { x } from "../http/server/guard.ts";`),
      file("src/jsonrpc/codec.ts", `import type { Context } from "../core/context.ts";`),
      file("src/core/handler.ts", `export * from "../index.ts";`),
      file("src/cellar/wine.ts", `const x = await import("../core/handler.ts");`),
      file("src/client/client.ts", `import { x } from "../../test/house.ts";`),
      file("src/live/server.ts", `import { x } from "../chain/chain.ts";`),
      file("src/config/gateway.ts", `import { x } from "../cli/main.ts";`),
      file("src/client/client.test.ts", `import { createServer } from "../chain/index.ts";`),
      file("src/cli/main.ts", `import { serve } from "../index.ts";`),
      file("src/index.ts", `export * from "./server/index.ts";`),
      file("src/dialogue/peer.ts", `import { Id } from "../jsonrpc/message.ts";\nimport "./pending.ts";`),
    ]),
  ).toEqual([
    `src/server/tools.ts imports ../http/server/guard.ts: "server" may not import "http"`,
    `src/jsonrpc/codec.ts imports ../core/context.ts: "core" is above "jsonrpc"`,
    `src/core/handler.ts imports ../index.ts: "src/*.ts" is above "core"`,
    `src/cellar/wine.ts imports ../core/handler.ts: "cellar" is not a known folder`,
    "src/client/client.ts imports ../../test/house.ts: the library imports nothing outside src/",
    `src/live/server.ts imports ../chain/chain.ts: "live" may not import "chain"`,
    `src/config/gateway.ts imports ../cli/main.ts: "cli" is above "config"`,
  ]);
});

it("the rules find an import cycle of any kind", () => {
  const files = [
    file("src/a/one.ts", `import "../b/two.ts";`),
    file("src/b/two.ts", `import type { X } from "../c/three.ts";`),
    file("src/c/three.ts", `const x = () => import("../a/one.ts");`),
    file("src/d/five.ts", `import "../a/one.ts";`),
  ];
  expect(importCycles(files)).toEqual(["src/a/one.ts -> src/b/two.ts -> src/c/three.ts -> src/a/one.ts"]);
  expect(importCycles(files.slice(0, 2))).toEqual([]);
});

it("the rules find a package that is not a dependency, and a module of Node without its prefix", () => {
  const text = `import a from "ajv/dist/2020.js";\nimport b from "@scope/b/c";\nimport "fs";\nimport "node:fs";`;
  expect(packageFaults([file("src/a.ts", text), file("src/a.test.ts", text)], ["ajv"])).toEqual([
    "src/a.ts imports @scope/b/c, which is not a dependency",
    "src/a.ts imports fs, which is not a dependency",
  ]);
});

it("the rules follow static imports to a package, and no others", () => {
  const files = [
    file("src/index.ts", `export * from "./server/index.ts";\nimport type { S } from "schema-types";`),
    file("src/server/index.ts", `import "node:fs";\nimport "./deep.ts";\nconst late = () => import("ajv");`),
    file("src/server/deep.ts", `import { z } from "zod";`),
  ];
  expect(loadedBy("src/index.ts", files).outside).toEqual(["src/server/deep.ts loads zod"]);
  expect(loadedBy("src/index.ts", files.slice(0, 2)).outside).toEqual(["src/server/deep.ts does not exist"]);
  expect([...loadedBy("src/index.ts", files).files]).toEqual(files.map(({ path }) => path));
});

it("the rules find a revision outside its folder", () => {
  const [oldest = ""] = NAMES;
  const files = ["src/dialogue/open.ts", "src/core/seal.test.ts", "src/protocol/revisions/index.ts"].map((path) =>
    file(path, `// since ${oldest}`),
  );
  expect(revisionFaults(files, NAMES)).toEqual([
    `src/dialogue/open.ts names ${oldest}`,
    `src/core/seal.test.ts names ${oldest}`,
  ]);
});

it("the rules count lines", () => {
  const files = [file("src/a.ts", "x\n".repeat(5)), file("src/a.test.ts", "x\n".repeat(6))];
  expect(longerThan(4, 5, files)).toEqual([
    "src/a.ts has 5 lines; the limit is 4",
    "src/a.test.ts has 6 lines; the limit is 5",
  ]);
  expect(longerThan(5, 6, files)).toEqual([]);
});

it("the rules find casts, and casts of casts, but no constants and imports", () => {
  const text = [
    'import { a as b } from "./b.ts";',
    'const c = ["as d"] as const; // as e',
    "const f = g as string;",
    "const h = i as unknown as\n  Promise<void>;",
  ].join("\n");
  const { all, double } = castsIn(
    ["src/core/a.ts", "src/core/a.test.ts", "src/chain/a.ts"].map((path) => file(path, text)),
  );
  expect(all).toEqual(["src/core/a.ts: g as string", "src/core/a.ts: i as unknown as Promise<void>"]);
  expect(double).toEqual(all.slice(1));
});

it("the rules find a missing header comment, and one that is too long", () => {
  expect(
    headerFaults([
      file("src/none.ts", `import "node:fs";\n// Late.\n`),
      file("src/long.ts", "// Word.\n".repeat(7)),
      file("src/good.ts", "// One.\n// Two.\nconst a = 1;\n"),
      file("src/block.ts", "/*\n * One.\n */\nconst a = 1;\n"),
      file("src/cli/main.ts", "#!/usr/bin/env node\n// One.\n// Two.\n"),
      file("src/one.test.ts", "// One line.\nconst a = 1;\n"),
      file("src/two.test.ts", "const a = 1;\n"),
    ]),
  ).toEqual([
    "src/none.ts does not begin with a comment",
    "src/long.ts begins with 7 comment lines; the limit is 6",
    "src/two.test.ts does not begin with a comment",
  ]);
});

it("the rules find a comment in the middle of a file that stands alone", () => {
  const text = "// One.\n\nconst a = 1;\n\n// Two.\n// And more.\n\nconst b = 2;\n\n// About c.\nconst c = 3;\n";
  expect(secondHeaders([file("src/a.ts", text)])).toEqual(["src/a.ts: // Two."]);
});

it("the rules find code that looks for words in what is said to people", () => {
  const found = [
    "if (message.startsWith(`The upstream ${name} `)) return error;",
    "const text = error.message.replace(`; ${hint}`, '');",
    "const [what] = said.split(/; (?=install)/);",
    "const isOurs = /^The (?:server|upstream) /.exec(error.message) !== null;",
    'const isNews = text.startsWith("Still running after ");',
    'import { WAITING } from "./words.ts";\nif (message !== WAITING) return;',
    "const at = text.search(/^\\[background\\] /m);",
    "const commands = new RegExp(`catenary(?= (?:${names})\\\\b)`);",
  ];
  const words = file("src/words.ts", 'export const WAITING = "Waiting for another evaluation";');
  const files = found.map((text, index) => file(`src/${index}.ts`, text));
  expect(sentenceReaders([words, ...files])).toEqual(files.map(({ path }) => path));
  const others = [
    'const { problem, hint } = error; // message.startsWith("The server ")',
    'const lines = message.split("\\n");',
    'if (path.startsWith("node:") || reason === undefined) return;',
  ];
  expect(sentenceReaders([words, ...others.map((text, index) => file(`src/${index}.ts`, text))])).toEqual([]);
  expect(sentenceReaders([file("src/a.test.ts", found.join("\n"))])).toEqual([]);
});

it("the rules find data that is turned into code, unless an exception says why", () => {
  const files = [
    file("src/a.ts", `spawn(command, args, { shell: true });`),
    file("src/b.ts", `spawn(command, args, { shell });\neval("1");`),
    file("src/c.ts", `const f = new Function("return 1");`),
    file("src/d.ts", `Object.assign(target, params);`),
    file("src/e.ts", `value.__proto__ = params;`),
    file("src/f.ts", `// eval("1")\nretrieval(1); session.eval(code); spawn(file, args, { shell: false });`),
    file("src/g.test.ts", `eval("1");`),
  ];
  const exception = { file: "src/d.ts", what: "Object.assign(", why: "both are our own" };
  expect(dangerFaults(files, [exception])).toEqual([
    "src/a.ts has shell: true",
    "src/b.ts has eval(",
    "src/c.ts has new Function",
    "src/e.ts has __proto__",
  ]);
  expect(dangerFaults([], [exception])).toEqual([
    `src/d.ts has an exception for "Object.assign(" that it does not need`,
  ]);
});
