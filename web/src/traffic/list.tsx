// The table Calls: a line for each logical call, and for what is nested under it.

import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import type { CallRow } from "../../../src/console/types.ts";
import { clock, plural, whoText } from "../kit/format.ts";
import { inertString } from "../kit/inert.ts";
import { Tag } from "../kit/marks.tsx";
import { VirtualTable, type Column } from "../kit/virtual-table.tsx";
import { Lane, windowOf, type LaneWindow } from "./lane.tsx";
import { countNested, isUnfolded, type Entry } from "./rows.ts";
import { drawn, fold, isPaused, view } from "./store.ts";

export interface CallListProps {
  /** The row that is chosen. */
  readonly chosen: number;
  readonly onChoose: (entry: Entry) => void;
  readonly onOpen: (entry: Entry) => void;
}

export function CallList(props: CallListProps): JSX.Element {
  const window = useRef<LaneWindow>({ from: 0, to: 1 });
  const columns: readonly Column<Entry>[] = [
    {
      name: "Time",
      class: "mono faint c-time",
      draw: ({ row, parent }) => (parent === undefined ? clock(row.at) : null),
    },
    { name: "Client", class: "c-client", draw: ({ row, parent }) => (parent === undefined ? clientText(row) : null) },
    { name: "Call", class: "c-call", draw: (entry) => <CallName entry={entry} /> },
    { name: "Server", class: "c-server", draw: ({ row }) => serverText(row) },
    { name: "When", class: "c-when", draw: (entry) => <Lane entry={entry} window={window.current} /> },
    { name: "ms", class: "num c-ms", draw: ({ row }) => took(row) },
  ];
  const { lines } = view;
  return (
    <VirtualTable
      label="Calls"
      columns={columns}
      count={lines.length}
      rowAt={(index) => lines[index] as Entry}
      keyOf={({ row }) => row.id}
      version={drawn.value}
      base={view.base}
      reveal={view.builds}
      follows={!isPaused.value}
      rowClass={rowClass}
      chosen={props.chosen}
      onChoose={(index) => pick(index, props.onChoose)}
      onOpen={(index) => pick(index, props.onOpen)}
      beforeDraw={(from, to) => (window.current = windowOf(lines.slice(from, to), Date.now()))}
    />
  );
}

function pick(index: number, use: (entry: Entry) => void): void {
  const entry = view.lines[index];
  if (entry !== undefined) use(entry);
}

function rowClass({ row, parent }: Entry): string {
  const nested = parent === undefined ? "" : " is-nested";
  return `${row.status === "error" ? "is-error" : row.status === "cancelled" ? "is-cancelled" : ""}${nested}`;
}

function CallName({ entry }: { readonly entry: Entry }): JSX.Element {
  const { row, parent } = entry;
  const text = short(row.name ?? row.method);
  return (
    <span class="call-name">
      {parent === undefined ? null : <span class="faint branch">{parent.nested?.at(-1) === entry ? "└" : "├"}</span>}
      <span class="cut" title={text}>
        {row.kind === "question" ? short(row.method) : text}
      </span>
      <Marks entry={entry} />
    </span>
  );
}

function Marks({ entry }: { readonly entry: Entry }): JSX.Element {
  const { row, nested } = entry;
  return (
    <>
      {row.status === "error" ? (
        <Tag tone="bad" title={row.errorText === undefined ? "" : inertString(row.errorText)}>
          {row.error === undefined || row.error === "tool_error" ? "error" : short(row.error)}
        </Tag>
      ) : null}
      {row.status === "cancelled" ? <Tag>cancelled</Tag> : null}
      {isAsked(entry) ? <Tag tone="warn">asked</Tag> : null}
      {row.kind === "retry" || row.kind === "poll" ? <Tag>{row.kind}</Tag> : null}
      {nested === undefined ? null : <Fold entry={entry} />}
    </>
  );
}

function isAsked({ row, nested }: Entry): boolean {
  return row.status === "asked" || nested?.some((child) => child.row.kind === "question") === true;
}

function Fold({ entry }: { readonly entry: Entry }): JSX.Element {
  const isOpen = isUnfolded(entry);
  const ofCode = entry.nested?.filter(({ row }) => row.kind === "code").length ?? 0;
  return (
    <button
      type="button"
      class="tag fold"
      tabIndex={-1}
      aria-expanded={isOpen}
      onClick={(event) => {
        event.stopPropagation();
        fold(entry, !isOpen);
      }}
    >
      {ofCode > 0 ? (
        `${plural(ofCode, "call")} `
      ) : (
        <span class="unseen">{plural(countNested(entry), "nested row")}</span>
      )}
      <span aria-hidden="true">{isOpen ? "▾" : "▸"}</span>
    </button>
  );
}

/** Without its version, which the detail has. */
function clientText({ client, principal }: CallRow): string {
  if (client !== undefined && whoText(client, principal ?? "") !== client) return "you";
  return short((client ?? principal)?.replace(/ v?\d[\w.+-]*$/, ""));
}

function serverText(row: CallRow): string {
  if (row.server === undefined) return "";
  return row.kind === "question" ? `← ${short(row.server)}` : short(row.server);
}

/** In milliseconds, as the head of the column says, or with its unit. */
function took(row: CallRow): string {
  const ms = row.kind === "question" ? row.waitMs : row.ms;
  if (ms === undefined) return row.status === "running" || row.status === "asked" ? "…" : "";
  if (ms < 10) return String(Number(ms.toFixed(1)));
  if (ms < 1000) return String(Math.round(ms));
  return ms < 60_000 ? `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s` : `${Math.round(ms / 60_000)} min`;
}

const shorts = new Map<string, string>();

/** A name made inert and cut, once for all rows that have it. */
function short(text: string | undefined): string {
  if (text === undefined) return "";
  let known = shorts.get(text);
  if (known === undefined) {
    known = inertString(text.slice(0, 120));
    if (shorts.size > 5000) shorts.clear();
    shorts.set(text, known);
  }
  return known;
}
