// Writes the JavaScript of the package; tsc writes the declarations. Node takes about a millisecond to load a file, so
// what `import "catenary"` loads is one file, and the rest is in as few files as its lazy imports allow. Prints nothing
// unless it fails, and a warning is a failure.

import { chmodSync, readFileSync, renameSync, symlinkSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "rolldown";

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
  main: { "server/server": true },
  // Apart from main, since a server needs it only when it runs a tool as a task.
  "tool-facts": { "protocol/tool-facts": true },
  chain: { index: false },
  serve: { serve: false },
  "http-server": { "http/server/mount": true, "http/server/listener": false },
  client: { "client/connect": true },
  "http-client": { "http/client/connect": true },
  gateway: { "chain/upstream/create-pool": true, "chain/router/router": true },
};
/** The file of each of these modules, found when the first is asked for. */
let files;

function group(id, graph) {
  const add = (module, file) => {
    const info = files.has(module) || /^[^./]/.test(module) ? null : graph.getModuleInfo(module);
    if (info === null) return;
    // What a gateway and a server share must not bring the gateway into bundles of a server.
    files.set(module, file === "chain" && !module.includes("/src/chain/") ? "main" : file);
    for (const imported of info.importedIds) add(imported, file);
  };
  if (files === undefined) {
    files = new Map();
    for (const [file, modules] of Object.entries(FILES)) {
      for (const [module, isIncluded] of Object.entries(modules)) {
        const id = fileURLToPath(new URL(`src/${module}.ts`, import.meta.url));
        if (graph.getModuleInfo(id) === null) throw new Error(`build.js: src/${module}.ts does not exist`);
        if (isIncluded) add(id, file);
        else for (const imported of graph.getModuleInfo(id).importedIds) add(imported, file);
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

function evaluation(id) {
  return /\/live\/js\/(?:guest|user-thread)\.ts$/.test(id) ? null : "evaluation";
}

const common = {
  platform: "node",
  external: /^[^./]/,
  logLevel: "warn",
  onLog(_level, { message }) {
    throw new Error(message);
  },
  plugins: [withoutBareImports],
};
const output = { dir: "dist", format: "esm", sourcemap: true, entryFileNames: "[name].js" };

const parts = [
  {
    ...common,
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

for (const part of parts) await build(part);

// Makes `npx catenary` work in this folder, as npm does where the package is installed.
chmodSync("dist/cli/main.js", 0o755);
const link = `node_modules/.bin/catenary.${process.pid}`;
symlinkSync("../../dist/cli/main.js", link);
// Replaces one that is there, also if another build does the same now.
renameSync(link, "node_modules/.bin/catenary");
