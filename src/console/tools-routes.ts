// The routes of the page Tools: the catalogue, calls of the operator, and the questions that they ask.

import type { ConsoleCatalogue } from "./catalogue.ts";
import type { Operator } from "./operator.ts";
import type { Route } from "./route.ts";

export function toolsRoutes(catalogue: ConsoleCatalogue, operator: Operator): Route[] {
  return [
    {
      method: "GET",
      path: "catalogue",
      about: "All tools, prompts, resources and templates of all servers, with what their definitions cost in tokens.",
      run: () => catalogue.read(),
    },
    {
      method: "GET",
      path: "questions",
      about: "The questions of servers that wait for the operator, oldest first.",
      run: () => operator.questions,
    },
    {
      method: "POST",
      path: "call",
      about:
        "Makes a call: `method` and `params`, or `row`, to make the call of that row again. A stream of events, from `started` to `ended`; the call is cancelled if its reader leaves.",
      run: (request) => operator.call(request),
    },
    {
      method: "POST",
      path: "cancel",
      about: "Cancels a `call` of the console by its id.",
      run: (request) => operator.cancel(request),
    },
    {
      method: "POST",
      path: "answer",
      about:
        "Answers a `question` by its id: `action` is accept, decline or cancel; `content` has the fields of a form.",
      run: (request) => operator.answer(request),
    },
  ];
}
