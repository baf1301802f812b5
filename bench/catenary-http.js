// The echo as tools of a server of ours, over HTTP.

import { serve } from "catenary";
import { tellCosts } from "./cost.js";
import { createEcho } from "./echo-server.js";

const { url } = await serve(createEcho(), { http: { port: 0 } });
tellCosts(url);
