// What of the suite cannot cross a chain, by how the server stands behind it. Each entry names the checks that are then
// not met, with what the suite says of them, and why no gateway could do better, or ours does something else: all other
// checks of the scenario are held as ever. What is not named here crosses.

import { NEWEST } from "../server-scenarios.ts";

/** How the everything server stands behind the chain. */
export interface Behind {
  readonly wire: "stdio" | "http";
  /** What it speaks; all revisions where nothing is said. */
  readonly revisions?: readonly string[];
}

export interface Loss {
  readonly scenario: string;
  /** For which servers. */
  isAt(behind: Behind): boolean;
  readonly because: string;
  /** Status, name and message of each check that is not met. */
  readonly unmet: readonly RegExp[];
  /** How many are. */
  readonly met: number;
}

const hasNoSessions = ({ revisions }: Behind): boolean => revisions?.includes(NEWEST) === true;
const hasNoStateless = ({ revisions }: Behind): boolean => revisions?.includes(NEWEST) === false;

const LOSSES: readonly Loss[] = [
  {
    scenario: "server-sse-polling",
    isAt: (behind) => behind.wire === "stdio" || hasNoSessions(behind),
    because:
      "the server hangs up in mid-call so that its caller comes back; only the streams of sessions over HTTP can end and " +
      "be taken up again, so a pipe or an exchange tells the gateway nothing of it, and the call is answered whole",
    unmet: [/^INFO server-sse-content-type: $/],
    met: 0,
  },
  {
    scenario: "input-required-result-basic-elicitation",
    isAt: hasNoStateless,
    because:
      "the suite wants the key that the server gives its question; in a session a question has no key, so the gateway " +
      "makes one",
    unmet: [/^FAILURE sep-2322-elicitation-incomplete: inputRequests missing expected key "user_name"$/],
    met: 1,
  },
  {
    scenario: "input-required-result-ignore-extra-params",
    isAt: hasNoStateless,
    because:
      "the suite answers a question before it is asked, by the key that the server gives it; in a session a question has " +
      "no key, so the gateway asks it under one of its own",
    unmet: [/^WARNING sep-2322-ignore-unexpected-params: Server did not return complete result /],
    met: 1,
  },
  {
    scenario: "tasks-required-task-error",
    isAt: hasNoStateless,
    because:
      "a tool that is always a task is refused to callers that know no tasks only where nothing else can be done; the " +
      "gateway runs it and waits for its end, so that they can call it too",
    unmet: [/^FAILURE sep-2663-server-returns-missing-capability-when-required: .* returned a successful response /],
    met: 1,
  },
];

export function lossesOf(behind: Behind): readonly Loss[] {
  return LOSSES.filter(({ isAt }) => isAt(behind));
}
