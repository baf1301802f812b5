// Serves a server of this folder on stdio: `node main.js NAME OPTIONS`. OPTIONS are the options of serve(), as JSON.

import { serve } from "catenary";

const [name, options = "{}"] = process.argv.slice(2);
const { server } = await import(new URL(`${name}.js`, import.meta.url).href);
await serve(server, JSON.parse(options));
