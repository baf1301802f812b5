// The page Chain: a picture of clients, transforms, middleware, router and servers with what happened at each, and the
// last changes of the one that is chosen. It is read again whenever the overview changes, which is at most once a second.

import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import "./chain.css";
import type { ChainNode, ChainPicture } from "../../../src/console/types.ts";
import { get, reasonOf } from "../api.ts";
import { Empty } from "../kit/marks.tsx";
import { inertString } from "../kit/inert.ts";
import { go, hrefOf, place } from "../router.ts";
import { overview } from "../state.ts";
import { NodeDetail } from "./detail.tsx";
import { layoutOf, partsOf, type Edge, type Layout } from "./layout.ts";
import { Node, toneOf } from "./node.tsx";

/** More clients than these are not drawn: those that called last are the first. */
const MAX_CLIENTS = 8;

export function Page(): JSX.Element {
  const [picture, setPicture] = useState<ChainPicture>();
  const [problem, setProblem] = useState<string>();
  const [chosen] = place.value.path;
  const seen = overview.value;
  useEffect(() => {
    const stop = new AbortController();
    get<ChainPicture>("chain", { node: chosen }, stop.signal).then(
      (read) => {
        setPicture(read);
        setProblem(undefined);
      },
      (error: unknown) => {
        if (!stop.signal.aborted) setProblem(reasonOf(error));
      },
    );
    return () => stop.abort();
  }, [chosen, seen]);
  const node = picture?.nodes.find(({ id }) => id === chosen);
  return (
    <>
      <div class="page-head">
        <h1>Chain</h1>
        <span class="soft wide-only">
          What every call passes, and what happened there. Choose a box to see its last changes.
        </span>
      </div>
      {picture !== undefined ? (
        <Picture picture={withFewClients(picture)} chosen={chosen} />
      ) : problem === undefined ? null : (
        <div class="panel">
          <Empty title="The chain cannot be read">{problem}</Empty>
        </div>
      )}
      {node === undefined ? null : <NodeDetail node={node} />}
    </>
  );
}

function withFewClients(picture: ChainPicture): ChainPicture {
  const left = new Set(picture.nodes.filter(({ kind }) => kind === "client").slice(MAX_CLIENTS));
  return left.size === 0 ? picture : { ...picture, nodes: picture.nodes.filter((node) => !left.has(node)) };
}

function Picture(props: { readonly picture: ChainPicture; readonly chosen: string | undefined }): JSX.Element {
  const frame = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = frame.current;
    if (element === null) return undefined;
    const measure = (): void => setWidth(element.clientWidth);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const { picture, chosen } = props;
  const layout = width === 0 ? undefined : layoutOf(picture, width);
  const { clients, chain, lanes } = partsOf(picture);
  const draw = (node: ChainNode): JSX.Element => (
    <li key={node.id}>
      <Node
        node={node}
        box={layout?.boxes.get(node.id)}
        isChosen={node.id === chosen}
        onChoose={() => choose(node.id === chosen ? undefined : node.id)}
      />
    </li>
  );
  return (
    <div class="panel chain-panel">
      <p class="unseen">{inWords(picture)}</p>
      <div
        ref={frame}
        class={layout === undefined ? "chain-picture is-list" : "chain-picture"}
        style={layout === undefined ? { height: "auto" } : { height: `${layout.height}px` }}
      >
        {layout === undefined ? null : <Edges layout={layout} />}
        <h2>Clients</h2>
        {clients.length === 0 ? (
          <p class="faint chain-nobody">No client has called yet.</p>
        ) : (
          <ul aria-label="Clients">{clients.map(draw)}</ul>
        )}
        {chain.length === 0 ? null : (
          <>
            <h2>Chain</h2>
            <ol aria-label="Transforms, middleware and router">{chain.map(draw)}</ol>
          </>
        )}
        <h2>Servers</h2>
        <ul aria-label="Servers and their own middleware">{lanes.flat().map(draw)}</ul>
      </div>
    </div>
  );
}

function choose(id: string | undefined): void {
  go(hrefOf("chain", id === undefined ? [] : [id]), { replace: true });
}

function Edges({ layout }: { readonly layout: Layout }): JSX.Element {
  const { width, height, edges } = layout;
  return (
    <svg class="chain-edges" width={width} height={height} viewBox={`0 0 ${width} ${height}`} aria-hidden="true">
      {edges.map((edge) => (
        <path key={`${edge.from.node.id} ${edge.to.node.id}`} d={edge.path} class={edgeTone(edge)} />
      ))}
    </svg>
  );
}

/** An edge is like the end that is at one of its sides alone: the client, or the server. */
function edgeTone({ from, to }: Edge): string {
  const { calls, health } = from.node.kind === "client" ? from.node : to.node;
  return toneOf(health) || (calls === 0 ? "is-quiet" : "");
}

/** The picture for those who do not see it. */
function inWords(picture: ChainPicture): string {
  const { chain, lanes } = partsOf(picture);
  const names = chain.map(({ name }) => inertString(name)).join(", then ");
  const servers = lanes.map((lane) => lane.map(({ name }) => inertString(name)).join(" before "));
  return `Calls of clients pass ${names === "" ? "" : `${names}, and then `}go to one of the servers: ${servers.join(", ")}.`;
}
