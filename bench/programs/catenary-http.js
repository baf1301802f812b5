// Our echo server over HTTP. The argument is the number of tools.

import { serve } from "catenary";
import { createEcho } from "./echo-server.js";

const { url } = await serve(createEcho(Number(process.argv[2])), { http: { port: 0 } });
process.send?.({ url });
