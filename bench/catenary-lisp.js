// Live Lisp over stdio, as a client gets it.

import { serve } from "catenary";
import { lisp } from "catenary/live";

await serve(lisp());
