#!/usr/bin/env node
// Starts the `catenary` program, which is program.ts. Newer versions of Node keep its compiled code in the cache folder
// if that is asked for before the code is loaded, so this file loads nothing else.

import * as nodeModule from "node:module";

/** In Node 22.1 and later. */
const { enableCompileCache } = nodeModule as { readonly enableCompileCache?: (folder: string) => unknown };

async function keepCompiledCode(enable: (folder: string) => unknown): Promise<void> {
  const { cacheFolder, checkCacheFolder, makeDirectory } = await import("../core/files.ts");
  const folder = `${cacheFolder()}/code`;
  await makeDirectory(folder);
  // What is in the folder is run, so no other user may write to it.
  await checkCacheFolder(folder);
  enable(folder);
}

// Where nothing can be kept, the start takes a little longer.
if (enableCompileCache !== undefined) await keepCompiledCode(enableCompileCache).catch(() => undefined);

const { run } = await import("./program.ts");
await run(process.argv.slice(2));
