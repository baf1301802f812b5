// Our live Lisp server over stdio.

import { serve } from "catenary";
import { lisp } from "catenary/live";

await serve(lisp());
