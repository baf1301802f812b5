// Writes dist: JavaScript, and the declarations that the entries of the package need. Node takes about a millisecond to
// load a file, so what `import "catenary"` loads is one file, and the rest is in as few files as its lazy imports allow.
// Prints nothing unless it fails, and a warning is a failure.

import { execFileSync } from "node:child_process";
import { chmodSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "rolldown";
import { minifySync } from "rolldown/utils";
import { build as buildPages } from "vite";

/**
 * For publishing: without source maps, which are larger than the code, and with the commands and the console minified,
 * which no program imports. The names of all functions stay, and the lines of the rest, for stack traces.
 */
const isPackage = process.argv.includes("--package");

const { exports } = JSON.parse(readFileSync("package.json", "utf8"));
const published = Object.values(exports).flatMap((entry) => entry.default ?? []);

/** Entry points by the path that they get in dist, without its ending. */
function entries(files) {
  const names = files.map((file) => file.replace(/^\.\/dist\/|\.js$/g, ""));
  return Object.fromEntries(names.map((name) => [name, `src/${name}.ts`]));
}

/**
 * Each becomes one file with all that it imports, but for what is in a file before it. A module that has a file of its
 * own anyway, since it is an entry or is imported lazily, stays there (`false`): otherwise a bundle of a server would
 * contain what only its lazy imports need, because bundlers keep those of functions that are not used.
 */
const FILES = {
  // Apart from main, so that a bundle that only needs the classes of errors has nothing else.
  errors: { "protocol/errors": true },
  main: { "core/secrets": false, "server/server": true },
  // Apart from main, since a server needs it only when it runs a tool as a task.
  "tool-facts": { "tools/facts": true },
  chain: { index: false },
  serve: { serve: false, "http/headers": true },
  "http-server": { "http/server/mount": true, "http/server/listener": false },
  // Apart from the client, since a server needs them only when a handler asks for input.
  input: {
    "dialogue/calls/url-elicitation": true,
    "dialogue/calls/input-required": true,
    "dialogue/calls/client-requests": true,
  },
  files: { "core/files": true },
  client: { "protocol/methods": false, "client/connect": true },
  // Apart from the client, since a server that checks tokens fetches keys.
  requester: { "http/client/node-requester": false, "http/client/requester-errors": true },
  "http-client": { "http/client/connect": true },
  gateway: { "chain/upstream/create-pool": true },
  router: { "chain/router/router": true },
  process: { "transport/child-process": false },
  // What commands share with entries of the package.
  shared: {
    "chain/middleware/log": true,
    "chain/transforms/filter": true,
    "live/languages": true,
    "live/options": true,
    "modules/load-module": true,
    "openapi/options": true,
    "programs/options": true,
  },
  middleware: { "chain/middleware/index": true },
  document: { "config/document": true },
  config: { "config/gateway": true, "config/load": true },
  terminal: { "cli/program": false },
  commands: { "cli/define": true, "cli/target/target": true },
  serving: { "cli/commands/serve": false, "cli/serve/gateway": false },
};
/** What reads and writes lines, on both sides of stdio. */
const LINES =
  /\/src\/(?:transport\/(?:stdio|line-input|line-writer)|jsonrpc\/(?:lines|skipped-message)|core\/turn-budget)\.ts$/;

/** The file of a module that `file` needs: what others need too must not bring the rest of that file along. */
function fileOf(module, file) {
  const isIn = (folder) => module.includes(`/src/${folder}/`);
  if (file === "chain" && !isIn("chain")) return "main";
  if (file === "http-server" && isIn("core")) return "serve";
  // A bundle of a server over HTTP would contain what only the client of a program needs of them.
  if (file === "serve" && LINES.test(module)) return "lines";
  if (file === "http-client" && isIn("protocol")) return "serve";
  // What the tasks of a server need of the protocol must not bring the client along.
  if (file === "client" && isIn("protocol")) return "main";
  if (["config", "terminal", "commands", "serving"].includes(file) && !isIn("cli")) {
    if (isIn("config")) return "config";
    // A server that checks tokens needs some of these.
    return isIn("auth") ? null : "shared";
  }
  return file;
}

/** The file of each of these modules, found when the first is asked for. */
let files;

function group(id, graph) {
  const add = (module, file) => {
    const info = files.has(module) || /^[^./]/.test(module) ? null : graph.getModuleInfo(module);
    if (info === null) return;
    files.set(module, fileOf(module, file));
    for (const imported of info.importedIds) add(imported, file);
  };
  if (files === undefined) {
    files = new Map();
    for (const [file, modules] of Object.entries(FILES)) {
      for (const [module, isIncluded] of Object.entries(modules)) {
        const id = fileURLToPath(new URL(`src/${module}.ts`, import.meta.url));
        if (graph.getModuleInfo(id) === null) throw new Error(`build.js: src/${module}.ts does not exist`);
        if (isIncluded) {
          add(id, file);
          continue;
        }
        files.set(id, null);
        for (const imported of graph.getModuleInfo(id).importedIds) add(imported, file);
      }
    }
  }
  return files.get(id) ?? null;
}

/**
 * Removes imports of our own files for their side effects, since they have none, and esbuild warns of each of them.
 * Leaves an empty line, so that source maps stay right.
 */
const withoutBareImports = {
  name: "without-bare-imports",
  generateBundle(_options, bundle) {
    for (const file of Object.values(bundle)) {
      if (file.type === "chunk") file.code = file.code.replace(/^import "(?:\.{1,2}\/[^"]+|node:module)";$/gm, "");
    }
  },
};

/** Minifies the files that have nothing but commands and the console. */
const minifyCommands = {
  name: "minify-commands",
  generateBundle(_options, bundle) {
    for (const chunk of Object.values(bundle)) {
      if (chunk.type !== "chunk" || !chunk.moduleIds.every((id) => /\/src\/(?:cli|console)\//.test(id))) continue;
      const keepNames = { function: true, class: true };
      const { code, errors } = minifySync(chunk.fileName, chunk.code, {
        module: true,
        compress: { keepNames },
        mangle: { keepNames },
      });
      if (errors.length > 0) throw new Error(`build.js: ${chunk.fileName}: ${errors[0].message}`);
      chunk.code = code;
    }
  },
};

function evaluation(id) {
  return /\/live\/js\/(?:guest|user-thread)\.ts$/.test(id) ? null : "evaluation";
}

const common = {
  platform: "node",
  // These are in dist too: minisearch has 33 KB of code in a package of 860 KB, and jsonc-parser is six files of CommonJS,
  // which each start with a config would load.
  external: /^(?!(?:minisearch|jsonc-parser)$)[^./]/,
  resolve: { mainFields: ["module", "main"] },
  logLevel: "warn",
  onLog(_level, { message }) {
    throw new Error(message);
  },
  plugins: [withoutBareImports],
};
const output = {
  dir: "dist",
  format: "esm",
  sourcemap: !isPackage,
  entryFileNames: "[name].js",
  comments: { annotation: true, jsdoc: false, legal: true },
};

const parts = [
  {
    ...common,
    plugins: isPackage ? [...common.plugins, minifyCommands] : common.plugins,
    input: entries([...published, "cli/main"]),
    // What splitting by our own groups requires.
    preserveEntrySignatures: "allow-extension",
    output: {
      ...output,
      cleanDir: true,
      chunkFileNames: "parts/[name].js",
      codeSplitting: { includeDependenciesRecursively: false, groups: [{ name: group, debugName: "files" }] },
    },
  },
  // These run in processes and threads of their own, which recognize their files by name.
  {
    ...common,
    input: entries([
      "core/node-buffer",
      "live/smalltalk/amber-guest",
      "live/smalltalk/attach-guest",
      "live/smalltalk/image-bridge",
      "modules/typescript",
      "modules/load-module",
    ]),
    output: { ...output, preserveModules: true, preserveModulesRoot: "src" },
  },
  // A JavaScript session starts faster with fewer files. Its controller recognizes the file of the main thread that only
  // receives messages, so what evaluates code is in another.
  {
    ...common,
    input: entries(["live/js/guest", "live/js/user-thread"]),
    output: {
      ...output,
      chunkFileNames: "live/js/[name].js",
      codeSplitting: { groups: [{ name: evaluation, debugName: "evaluation" }] },
    },
  },
  { ...common, input: entries(["live/js/controller"]), output },
  { ...common, input: entries(["openapi/worker"]), output },
];

/**
 * Packages whose code is in dist, so that installing ours does not install all that they depend on. Vulnerability
 * databases do not see them in the installs of users, so what reads the messages of a network is not among them.
 */
const VENDORED = {
  "modules/acorn.cjs": `export { Parser } from "acorn";`,
  "modules/sucrase.cjs": `
    export { transform } from "sucrase";
    export { parse } from "sucrase/dist/esm/parser/index.js";`,
};

/** Parts of sucrase that we do not use: a check of its options, and what it makes of other languages than TypeScript. */
const UNUSED = [
  [/\/sucrase\/dist\/esm\/Options\.js$/, "export const validateOptions = () => {};"],
  [
    /\/sucrase\/.*\/(?:CJSImportProcessor|(?:CJSImport|Flow|JestHoist|React\w+)Transformer)\.js$/,
    "export default class {}",
  ],
];

/** Writes a file with the code of packages. */
async function vendor(file, code) {
  const unused = (id) => UNUSED.find(([pattern]) => pattern.test(id))?.[1] ?? null;
  return build({
    ...common,
    external: [],
    input: "vendored",
    plugins: [
      {
        name: "vendored",
        resolveId: (id) => (id === "vendored" ? id : null),
        load: (id) => (id === "vendored" ? code : unused(id)),
      },
    ],
    treeshake: { moduleSideEffects: false },
    output: { file: `dist/${file}`, format: "cjs", esModule: false, minify: true },
  });
}

/** The folders of the packages whose code is in the files of a build. */
function packagesIn({ output: files }) {
  const modules = files.flatMap((file) => Object.entries(file.modules ?? {}));
  const written = modules.filter(([, { renderedLength }]) => renderedLength > 0);
  return written.flatMap(([id]) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id) ?? []);
}

/** The licence of each package whose code is in dist, as the licences demand. */
function licences(folders) {
  return folders.map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = readdirSync(folder).find((one) => /^licen[cs]e/i.test(one));
    if (file === undefined) throw new Error(`build.js: ${name} has no file with its licence`);
    return `${name} ${version} (${license})\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
  });
}

/** Removes the declarations that no entry of the package imports. */
function pruneDeclarations() {
  const needed = new Set(Object.values(exports).flatMap(({ types }) => (types === undefined ? [] : resolve(types))));
  for (const file of needed) {
    for (const [, path] of readFileSync(file, "utf8").matchAll(/(?:from |import\()"(\.[^"]+)\.ts"/g)) {
      needed.add(resolve(dirname(file), `${path}.d.ts`));
    }
  }
  for (const name of readdirSync("dist", { recursive: true })) {
    const file = resolve("dist", name);
    if (file.endsWith(".d.ts") && !needed.has(file)) rmSync(file);
  }
}

/** The type of an option, by the kind of its field. */
const KINDS = {
  "": (type) => (type.includes("=>") ? `(${type})` : type),
  Required: (type) => type,
  Default: (type) => type,
  Object: (type) => type,
  ObjectOrFlag: (type) => `boolean | ${type}`,
  List: (type) => `readonly ${type}[]`,
  Map: (type) => `Readonly<Record<string, ${type}>>`,
};

/**
 * Writes the types of options as interfaces with doc comments. tsc writes `OptionsOf<typeof OPTIONS>`, and a type with
 * all fields for `OPTIONS`, but editors show no comments of what a type like `OptionsOf` maps.
 */
function expandOptions(text) {
  const fields = /^(?:export )?declare const (\w+): (\{\n[^]*?\n\});\n/gm;
  const aliases = /^(export )?type (\w+) = OptionsOf<typeof (\w+)>;$/gm;
  const sources = new Map([...text.matchAll(fields)].map(([, name, members]) => [name, members]));
  const names = new Map(
    [...text.matchAll(aliases)].map(([, , alias, name]) => [oneLine(sources.get(name) ?? ""), alias]),
  );
  const expandMembers = (members) => {
    const member =
      /^( *)(?:readonly )?(\w+): [^\n<]*?(Required|Default|ObjectOrFlag|Object|List|Map|)Field<("(?:[^"\\]|\\.)*"), (.*?|[^\n]*\{\n[^]*?\n\1\}.*?)>;$/gm;
    return members.replace(member, (_all, indent, name, kind, description, type) => {
      const comment = description === '""' ? "" : `${indent}/** ${JSON.parse(description)} */\n`;
      const value = KINDS[kind](
        /List|Map|Object/.test(kind) ? (names.get(oneLine(type)) ?? expandMembers(type)) : type,
      );
      return `${comment}${indent}readonly ${name}${kind === "Required" ? `: ${value}` : `?: ${value} | undefined`};`;
    });
  };
  return text
    .replace(fields, (all, _name, members) => (members.includes("Field<") ? "" : all))
    .replace(
      aliases,
      (_all, exported = "", alias, name) => `${exported}interface ${alias} ${expandMembers(sources.get(name))}`,
    );
}

function oneLine(text) {
  return text.replaceAll(/\s+/g, " ");
}

/** Writes the JSON Schema of a config, which its readers make. */
async function writeSchema() {
  const file = "dist/config/schema.js";
  const output = { file, format: "esm", codeSplitting: false };
  await build({ ...common, input: "src/config/schema.ts", output });
  const { CONFIG_SCHEMA } = await import(pathToFileURL(file).href);
  writeFileSync("dist/config/schema.json", `${JSON.stringify(CONFIG_SCHEMA)}\n`);
  rmSync(file);
}

const vendored = [];
for (const part of parts) vendored.push(...packagesIn(await build(part)));
for (const [file, code] of Object.entries(VENDORED)) vendored.push(...packagesIn(await vendor(file, code)));
// The pages of the console. The policy of a page allows no other files, so the licences are with the others.
const pages = { configFile: "web/vite.config.js", configLoader: "native", logLevel: "warn" };
vendored.push(...packagesIn(await buildPages({ ...pages, build: { sourcemap: !isPackage } })));
writeFileSync("dist/THIRD-PARTY-LICENSES.txt", licences([...new Set(vendored)]).join(`\n${"-".repeat(80)}\n\n`));

await writeSchema();

const compiler = fileURLToPath(import.meta.resolve("typescript/package.json"));
execFileSync(process.execPath, [join(dirname(compiler), "bin/tsc"), "-p", "tsconfig.build.json", "--noCheck"], {
  stdio: "inherit",
});
for (const name of readdirSync("dist", { recursive: true }).filter((file) => file.endsWith(".d.ts"))) {
  const text = readFileSync(join("dist", name), "utf8");
  if (text.includes("OptionsOf<")) writeFileSync(join("dist", name), expandOptions(text));
}
pruneDeclarations();

// Makes `npx catenary` work in this folder, as npm does where the package is installed.
chmodSync("dist/cli/main.js", 0o755);
const link = `node_modules/.bin/catenary.${process.pid}`;
symlinkSync("../../dist/cli/main.js", link);
// Replaces one that is there, also if another build does the same now.
renameSync(link, "node_modules/.bin/catenary");
