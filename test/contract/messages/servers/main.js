// A server of this folder on the process's own stdio: `node main.js NAME OPTIONS`, OPTIONS as JSON for `serve`.

import { serve } from "catenary";

const [name, options = "{}"] = process.argv.slice(2);
const { server } = await import(new URL(`${name}.js`, import.meta.url).href);
await serve(server, JSON.parse(options));
