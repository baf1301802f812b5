// Our echo server over HTTP.

import { serve } from "catenary";
import { reportCostOnRequest } from "./report-cost.js";
import { createEcho } from "./echo-server.js";

const { url } = await serve(createEcho(), { http: { port: 0 } });
reportCostOnRequest(url);
