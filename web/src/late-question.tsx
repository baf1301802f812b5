// The dialog of a question of a server, for pages other than Tools: its code is loaded when a server asks.

import type { ComponentType, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Question } from "../../src/console/types.ts";
import { say } from "./state.ts";

export function LateQuestion({ question }: { readonly question: Question }): JSX.Element | null {
  const [loaded, setLoaded] = useState<{ readonly Dialog: ComponentType<{ readonly question: Question }> }>();
  useEffect(() => {
    Promise.all([import("./tools/question.tsx"), import("./tools/tools.css")]).then(
      ([{ QuestionDialog }]) => setLoaded({ Dialog: QuestionDialog }),
      () => say("The dialog could not be loaded: load the page again.", true),
    );
  }, []);
  return loaded === undefined ? null : <loaded.Dialog key={question.id} question={question} />;
}
