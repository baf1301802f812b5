// Runs the official suite through a gateway: the everything server behind `catenary serve CONFIG --http`, as a program
// that the gateway starts or at a URL, in all revisions or only some. Every scenario has to meet the same checks as
// without the gateway, except those in LOSSES.

import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { expectNoProcesses, CliProcess } from "../../contract/cli/cli-process.ts";
import { EVERYTHING_SERVER, startEverything, type EverythingProcess } from "../everything-programs.ts";
import { installSuite } from "../install-suite.ts";
import {
  expectConformance,
  isInformational,
  NEWEST,
  reportFaults,
  runScenarios,
  scenariosAt,
  WITH_REQUIREMENTS,
} from "../server-scenarios.ts";
import { countMet, Suite, type Outcome, type Results } from "../suite.ts";
import { WAIT_MS } from "../../support/waiting.ts";

const RUN_TIMEOUT_MS = 920_000;
/** What the gateway prints beside errors: at its start, and when it receives SIGTERM. */
const NOTICE = /^(?:catenary: shutting down; |No token is required: )/;
/** What the middleware pin says about the items that the suite adds while it runs. */
const HELD = /^catenary: warning: The (?:tool|prompt) "test_temporary_/;

/** The everything server behind the gateway. */
export interface EverythingUpstream {
  readonly transport: "stdio" | "http";
  /** All of them by default. */
  readonly revisions?: readonly string[];
  /** The middleware of the gateway, as in a config. None by default. */
  readonly chain?: readonly unknown[];
  /** Lines that this middleware writes to stderr. None by default. */
  readonly expectedStderr?: RegExp;
}

/** Checks that cannot be met through a gateway. */
interface Loss {
  readonly scenario: string;
  applies(upstream: EverythingUpstream): boolean;
  readonly because: string;
  /** Status, id and message of each check that is not met. */
  readonly unmet: readonly RegExp[];
  /** The number of checks that are met. */
  readonly met: number;
}

const hasNoSessions = ({ revisions }: EverythingUpstream): boolean => revisions?.includes(NEWEST) === true;
const hasNoStateless = ({ revisions }: EverythingUpstream): boolean => revisions?.includes(NEWEST) === false;

const LOSSES: readonly Loss[] = [
  {
    scenario: "server-sse-polling",
    applies: (upstream) => upstream.transport === "stdio" || hasNoSessions(upstream),
    because:
      "the server ends its stream during the call so that the client resumes it; only streams of sessions over HTTP can " +
      "be resumed, so over stdio or without sessions the gateway does not learn of it and sends the whole response",
    unmet: [/^INFO server-sse-content-type: $/],
    met: 0,
  },
  {
    scenario: "input-required-result-basic-elicitation",
    applies: hasNoStateless,
    because:
      "the suite expects the key that the server gives its request; in a session requests have no key, so the gateway " +
      "generates one",
    unmet: [/^FAILURE sep-2322-elicitation-incomplete: inputRequests missing expected key "user_name"$/],
    met: 1,
  },
  {
    scenario: "input-required-result-ignore-extra-params",
    applies: hasNoStateless,
    because:
      "the suite answers a request before it is sent, by the key that the server gives it; in a session requests have no " +
      "key, so the gateway sends it under a key of its own",
    unmet: [/^WARNING sep-2322-ignore-unexpected-params: Server did not return complete result /],
    met: 1,
  },
  {
    scenario: "tasks-required-task-error",
    applies: hasNoStateless,
    because:
      "a server rejects calls without tasks of a tool that must be a task; the gateway runs the task and waits for its " +
      "result, so that clients without tasks can call it too",
    unmet: [/^FAILURE sep-2663-server-returns-missing-capability-when-required: .* returned a successful response /],
    met: 1,
  },
];

const installed = await installSuite();
if (typeof installed === "string") throw new Error(`The official conformance suite is not installed: ${installed}`);
const suite = new Suite(installed, "server", expectConformance);
const known = await suite.scenarios();

/** A gateway process, and the everything server where the gateway does not start it. */
class GatewayProcess {
  #folder: string | undefined;
  #server: EverythingProcess | undefined;
  #gateway: CliProcess | undefined;

  async start({ transport, revisions, chain = [] }: EverythingUpstream): Promise<string> {
    const args = revisions === undefined ? [] : ["--revisions", revisions.join(",")];
    if (transport === "http") this.#server = await startEverything(...args);
    const entry =
      this.#server === undefined
        ? { command: process.execPath, args: [EVERYTHING_SERVER, "--stdio", ...args] }
        : { url: this.#server.url };
    const folder = mkdtempSync(join(tmpdir(), "catenary-conformance-"));
    this.#folder = folder;
    const config = join(folder, "catenary.json");
    writeFileSync(config, JSON.stringify({ mcpServers: { everything: entry }, chain }));
    const gateway = new CliProcess(["serve", config, "--http", "127.0.0.1:0", "--json"], {
      env: { CATENARY_CACHE: join(folder, "cache") },
    });
    this.#gateway = gateway;
    await Promise.race([once(gateway.process.stdout, "data"), gateway.exited]);
    if (gateway.out === "") throw new Error(`The gateway did not start: ${gateway.err}`);
    return (JSON.parse(gateway.out) as { readonly url: string }).url;
  }

  /** Inherited by all processes that the gateway starts. */
  get mark(): string {
    return this.#gateway?.mark ?? "";
  }

  /** Stops gateway and server. Returns the exit code of the gateway and what both printed on stderr. */
  async stop(): Promise<{ readonly code: number | null | undefined; readonly stderr: string[] }> {
    const gateway = this.#gateway;
    gateway?.process.kill("SIGTERM");
    const timer = setTimeout(() => gateway?.process.kill("SIGKILL"), WAIT_MS);
    const code = await gateway?.exited;
    clearTimeout(timer);
    await this.#server?.stop();
    if (this.#folder !== undefined) rmSync(this.#folder, { recursive: true, force: true });
    const lines = [...(gateway?.err.split("\n") ?? []), ...(this.#server?.stderrLines ?? [])];
    return { code, stderr: lines.filter((line) => line !== "" && !NOTICE.test(line) && !HELD.test(line)) };
  }
}

/** What server-stateless calls as a client with elicitation. */
const ELICITING = { name: "test_streaming_elicitation", arguments: {} };

/**
 * Clients with other capabilities get another session with the upstream, and so does a call that finds it busy with a
 * question. A program takes longer to start than the suite waits in server-stateless for its one question. So a call is
 * made and its question answered here, which leaves a session that is open and free. The questions of scenarios that ran
 * before stay unanswered.
 */
async function openElicitationSession(url: string): Promise<void> {
  const method = "tools/call";
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": NEWEST,
    "io.modelcontextprotocol/clientCapabilities": { elicitation: {} },
  };
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": NEWEST,
    "mcp-method": method,
    "mcp-name": ELICITING.name,
  };
  const call = async (fields: object): Promise<Readonly<Record<string, unknown>>> => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...ELICITING, ...fields, _meta } });
    const response = await fetch(url, { method: "POST", headers, body });
    return ((await response.json()) as { readonly result: Record<string, unknown> }).result;
  };
  const { inputRequests, requestState } = await call({});
  const [key] = Object.keys(inputRequests as object);
  const answered = await call({ requestState, inputResponses: { [String(key)]: { action: "cancel" } } });
  expect(answered).toMatchObject({ resultType: "complete" });
}

export function testThroughGateway(revision: string, upstream: EverythingUpstream): void {
  const { transport, revisions, chain } = upstream;
  const only = revisions === undefined ? "" : ` that speaks only ${revisions.join(", ")}`;
  const title = `the official suite at ${revision}, through a gateway to a server over ${transport}${only}${chain === undefined ? "" : ", with middleware"}`;
  const scenarios = scenariosAt(known, revision);
  const losses = LOSSES.filter((loss) => loss.applies(upstream) && scenarios.includes(loss.scenario));
  const lossless = scenarios.filter((name) => !losses.some(({ scenario }) => scenario === name));

  describe(title, () => {
    const results: Results = new Map();
    const gateway = new GatewayProcess();
    let stopped: ReturnType<GatewayProcess["stop"]> | undefined;
    const stop = (): ReturnType<GatewayProcess["stop"]> => (stopped ??= gateway.stop());

    let url = "";

    beforeAll(async () => {
      url = await gateway.start(upstream);
      const prepare = async (): Promise<void> => {
        if (transport === "stdio" && revision === NEWEST) await openElicitationSession(url);
      };
      for (const [name, outcome] of await runScenarios(suite, url, revision, scenarios, prepare))
        results.set(name, outcome);
    }, RUN_TIMEOUT_MS);

    afterAll(async () => {
      reportFaults(title, new Map([...results].filter(([name]) => lossless.includes(name))));
      await stop();
    });

    it.each(lossless)("%s", (scenario) => expectConformance(scenario, revision, results.get(scenario)));

    for (const loss of losses) {
      it(`${loss.scenario}, with a known loss: ${loss.because}`, () => {
        expectLoss(loss, results.get(loss.scenario));
      });
    }

    it("has run all scenarios of the suite, and no others", async () => {
      expect([...results.keys()].toSorted()).toEqual(scenarios.toSorted());
      if (WITH_REQUIREMENTS.includes(revision)) {
        expect(scenarios).toEqual(expect.arrayContaining(await suite.required(revision)));
      }
    });

    it.runIf(chain !== undefined)("has run through the middleware", async () => {
      const figures = await (await fetch(new URL("/metrics", url))).text();
      expect(figures).toContain('mcp_method_name="tools/call",gen_ai_tool_name="test_simple_text"');
    });

    it("leaves a gateway that printed no error, exits on SIGTERM, and leaves no process behind", async () => {
      const { code, stderr } = await stop();
      expect(code).toBe(0);
      expect(stderr.filter((line) => upstream.expectedStderr?.test(line) !== true)).toEqual([]);
      await expectNoProcesses(gateway.mark);
    });
  });
}

/** Exactly the checks of the loss are not met, with the expected message, and all others are. */
function expectLoss({ scenario, unmet, met }: Loss, outcome: Outcome | undefined): void {
  if (outcome === undefined) expect.fail(`The suite did not run ${scenario}`);
  const bad = outcome.checks.filter((check) => check.status !== "SUCCESS" && !isInformational(check));
  const messages = bad.map(({ status, id, errorMessage }) => `${status} ${id}: ${errorMessage ?? ""}`);
  expect(messages).toEqual(unmet.map((pattern) => expect.stringMatching(pattern) as string));
  expect(countMet(outcome.checks)).toBe(met);
}
