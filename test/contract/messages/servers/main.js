// Serves a server of this folder on stdio: `node main.js NAME`.

import { serve } from "catenary";

const [name] = process.argv.slice(2);
const { server } = await import(new URL(`${name}.js`, import.meta.url).href);
await serve(server);
