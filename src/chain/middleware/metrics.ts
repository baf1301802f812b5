// Counts requests and measures how long they take, for GET /metrics of the HTTP server, in the text format of Prometheus.
// The names follow OpenTelemetry's conventions for MCP. Callers choose methods and names, so a name gets figures of its
// own only once it was in a list or a call of it succeeded, and the number of series is limited. The rest is `_other`.

import { count, type OptionsOf, type ValuesOf } from "../../core/fields.ts";
import { define, type ActingMiddleware, type DefinedMiddleware } from "../define.ts";
import { REQUEST_NAMES } from "../method-names.ts";
import { readBy, type CallReader, type ObservedCall } from "../observe.ts";

const OPTIONS = {
  maxSeries: count("How many combinations of method, name, server and error have figures of their own.").or(1_000),
};

/** Options of `metrics()`. */
export type MetricsOptions = OptionsOf<typeof OPTIONS>;

const MAX_NAME_LENGTH = 128;
const OTHER = "_other";
/** Seconds, as OpenTelemetry's conventions for MCP recommend. */
const BUCKETS: readonly number[] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300];
const DURATION = "mcp_server_operation_duration_seconds";
const RESTARTS = "catenary_upstream_restarts_total";
const IN_FLIGHT = "catenary_requests_in_flight";

/** The label for the name that a request has in its params. */
const NAME_LABELS: ReadonlyMap<string, string> = new Map([
  ["tools/call", "gen_ai_tool_name"],
  ["prompts/get", "gen_ai_prompt_name"],
]);

/**
 * Measures requests. An HTTP server in front of the gateway shows the figures at `/metrics`.
 *
 * @example
 * await serve(chain(metrics()).to(server), { http: { port: 3000 } });
 */
export const metrics: DefinedMiddleware<[options?: MetricsOptions]> = define({
  name: "metrics",
  summary: "Measures requests for GET /metrics of the HTTP server, in the text format of Prometheus.",
  options: OPTIONS,
  keepsLists: true,
  middleware: createMetrics,
});

function createMetrics({ maxSeries }: ValuesOf<typeof OPTIONS>): ActingMiddleware {
  const figures = new Figures(maxSeries);
  const middleware: ActingMiddleware = readBy(figures);
  middleware.metrics = (upstreams) => figures.format(upstreams);
  middleware.needs = () => false;
  return middleware;
}

/** What is known about the requests of a method. */
interface Operation {
  readonly method: string;
  /** The label for the names that requests have. Undefined if they have none. */
  readonly nameLabel: string | undefined;
  inFlight: number;
  /** By name, server and error. The names are those that were listed, or used with success. */
  readonly series: SeriesTree;
}

interface Series {
  readonly labels: string;
  /** Not cumulative; the last is for durations above all limits. */
  readonly counts: number[];
  seconds: number;
}

/** Looked up with every request, which is faster level by level than with a key that is put together. */
type SeriesTree = Map<string, Map<string, Map<string, Series>>>;

function branch<Key, Inner extends Map<unknown, unknown>>(map: Map<Key, Inner>, key: Key): Inner {
  let inner = map.get(key);
  if (inner === undefined) map.set(key, (inner = new Map() as Inner));
  return inner;
}

class Figures implements CallReader<Operation> {
  readonly #maxSeries: number;
  readonly #series: Series[] = [];
  readonly #operations = new Map<string, Operation>();

  constructor(maxSeries: number) {
    this.#maxSeries = maxSeries;
  }

  begin(call: ObservedCall<Operation>): void {
    const { method } = call.request;
    const operation = this.#operations.get(method) ?? this.#operation(method);
    operation.inFlight += 1;
    call.state = operation;
  }

  /** Of a method that was not used yet. Callers choose methods, so those that are unknown share one. */
  #operation(name: string): Operation {
    const method = REQUEST_NAMES.has(name) ? name : OTHER;
    let operation = this.#operations.get(method);
    if (operation === undefined) {
      operation = { method, nameLabel: NAME_LABELS.get(method), inFlight: 0, series: new Map() };
      this.#operations.set(method, operation);
    }
    return operation;
  }

  end(call: ObservedCall<Operation>): void {
    const { state: operation } = call;
    const { method } = operation;
    operation.inFlight -= 1;
    // A subscription is open for as long as its caller likes.
    if (method === "subscriptions/listen") return;
    const error = errorType(call);
    const series = this.#seriesOf(call, error);
    if (series === undefined) return;
    const seconds = call.ms / 1_000;
    let at = 0;
    while (at < BUCKETS.length && seconds > (BUCKETS[at] ?? 0)) at += 1;
    series.counts[at] = (series.counts[at] ?? 0) + 1;
    series.seconds += seconds;
  }

  /** Undefined if there are too many. A name has series only if it is known, so that those are looked for first. */
  #seriesOf(call: ObservedCall<Operation>, error: string): Series | undefined {
    const { state: operation, request, upstream: server = "" } = call;
    const { nameLabel, series } = operation;
    const name = nameLabel === undefined ? "" : (request.params["name"] as string);
    const known = series.get(name)?.get(server)?.get(error);
    if (known !== undefined) return known;
    // Callers choose names, so one has series only if it is listed, or was used with success.
    const isKnown = series.has(name) || error === "" || call.context.item?.definition !== undefined;
    const fits = typeof name === "string" && name.length <= MAX_NAME_LENGTH;
    const label = nameLabel === undefined || (fits && isKnown) ? name : OTHER;
    return (
      this.#find(operation, label, server, error) ??
      this.#find(operation, label === "" ? "" : OTHER, "", error === "" ? "" : OTHER, true)
    );
  }

  /** Undefined if there are too many. The last resort has few combinations, so it does not count. */
  #find(
    { method, nameLabel = "", series: tree }: Operation,
    name: string,
    server: string,
    error: string,
    isLastResort = false,
  ): Series | undefined {
    const known = tree.get(name)?.get(server)?.get(error);
    if (known !== undefined || (this.#series.length >= this.#maxSeries && !isLastResort)) return known;
    const labels = formatLabels({
      mcp_method_name: method,
      [nameLabel]: name,
      server,
      error_type: error,
    });
    const series = { labels, counts: Array.from({ length: BUCKETS.length + 1 }, () => 0), seconds: 0 };
    this.#series.push(series);
    branch(branch(tree, name), server).set(error, series);
    return series;
  }

  format(upstreams: Readonly<Record<string, { readonly restarts: number }>>): string {
    const durations = this.#series.flatMap(formatHistogram);
    const running = [...this.#operations.values()].map(
      ({ method, inFlight }) => `${IN_FLIGHT}${formatLabels({ mcp_method_name: method })} ${inFlight}`,
    );
    const restarts = Object.entries(upstreams).map(
      ([server, status]) => `${RESTARTS}${formatLabels({ server })} ${status.restarts}`,
    );
    return [
      `# HELP ${DURATION} How long requests took.`,
      `# TYPE ${DURATION} histogram`,
      ...durations,
      `# HELP ${IN_FLIGHT} Requests and subscriptions that are not finished.`,
      `# TYPE ${IN_FLIGHT} gauge`,
      ...running,
      `# HELP ${RESTARTS} Restarts of an upstream after a failure.`,
      `# TYPE ${RESTARTS} counter`,
      ...restarts,
      "",
    ].join("\n");
  }
}

function formatHistogram({ labels, counts, seconds }: Series): string[] {
  const open = `${labels.slice(0, -1)},`;
  let sum = 0;
  const buckets = counts.map((count, at) => {
    sum += count;
    return `${DURATION}_bucket${open}le="${BUCKETS[at] ?? "+Inf"}"} ${sum}`;
  });
  return [...buckets, `${DURATION}_sum${labels} ${seconds}`, `${DURATION}_count${labels} ${sum}`];
}

/** Labels in the text format of Prometheus. Empty ones are left out. */
function formatLabels(labels: Readonly<Record<string, string>>): string {
  const escape = (value: string): string =>
    value.replaceAll(/[\\"\n]/g, (character) => (character === "\n" ? "\\n" : `\\${character}`));
  const present = Object.entries(labels).filter(([, value]) => value !== "");
  return `{${present.map(([name, value]) => `${name}="${escape(value)}"`).join(",")}}`;
}

/** The value of OpenTelemetry's `error.type`: the code of an answer, or why there was none. Empty if the call worked. */
export function errorType(call: ObservedCall): string {
  if (call.status === "failed") return String(call.errorCode ?? call.errorKind ?? OTHER);
  return call.status === "cancelled" || call.outcome === "tool_error" ? call.outcome : "";
}
