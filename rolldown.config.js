// The JavaScript of the package; tsc writes the declarations. Node takes about a millisecond to load a file, so what
// `import "catenary"` loads is one file, and the rest is in as few files as its lazy imports allow.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const { exports } = JSON.parse(readFileSync("package.json", "utf8"));
const published = Object.values(exports).flatMap((entry) => entry.default ?? []);

/** Entry points by the path that they get in dist, without its ending. */
function entries(files) {
  const names = files.map((file) => file.replace(/^\.\/dist\/|\.js$/g, ""));
  return Object.fromEntries(names.map((name) => [name, `src/${name}.ts`]));
}

/** Each becomes one file with all that it imports, but for what is in a file before it. */
const FILES = {
  main: ["index"],
  serve: ["serve"],
  "http-server": ["http/server/mount", "http/server/listener"],
  client: ["client/connect"],
  "http-client": ["http/client/connect"],
  gateway: ["chain/upstream/create-pool", "chain/router/router"],
};
/** The file of each of these modules, found when the first is asked for. */
let files;

function group(id, graph) {
  const add = (module, file) => {
    const info = files.has(module) || /^[^./]/.test(module) ? null : graph.getModuleInfo(module);
    if (info === null) return;
    files.set(module, file);
    for (const imported of info.importedIds) add(imported, file);
  };
  if (files === undefined) {
    files = new Map();
    for (const [file, modules] of Object.entries(FILES)) {
      for (const module of modules) {
        const id = fileURLToPath(new URL(`src/${module}.ts`, import.meta.url));
        if (graph.getModuleInfo(id) === null) throw new Error(`rolldown.config.js: src/${module}.ts does not exist`);
        add(id, file);
      }
    }
  }
  return files.get(id) ?? null;
}

const common = { platform: "node", external: /^[^./]/, logLevel: "warn" };
const output = { dir: "dist", format: "esm", sourcemap: true, entryFileNames: "[name].js" };

export default [
  {
    ...common,
    input: entries([...published, "cli/main"]),
    output: {
      ...output,
      cleanDir: true,
      keepNames: true,
      chunkFileNames: "parts/[name].js",
      codeSplitting: { includeDependenciesRecursively: false, groups: [{ name: group, debugName: "files" }] },
    },
  },
  // These run in processes and threads of their own, which recognize their files by name.
  {
    ...common,
    input: entries(["live/js/guest", "live/js/controller", "modules/typescript", "modules/load-module"]),
    output: { ...output, preserveModules: true, preserveModulesRoot: "src" },
  },
];
