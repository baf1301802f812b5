// The list of all tools, resources or prompts, by server, with what the definition of each costs.

import type { JSX } from "preact";
import type { CatalogueItem } from "../../../src/console/types.ts";
import { count } from "../kit/format.ts";
import { InertText } from "../kit/inert-text.tsx";
import { inertString } from "../kit/inert.ts";
import { Tag } from "../kit/marks.tsx";
import { VirtualTable, type Column } from "../kit/virtual-table.tsx";
import { go } from "../router.ts";
import { colorOf } from "../state.ts";
import { catalogue, hrefOfItem, lines, type Line } from "./catalogue.ts";

/** A longer name is cut in its middle: those of resources differ at their ends. */
const MAX_WHOLE = 28;
const TAIL = 20;

/** Of each list; a list that is read again has the same items at the same places, mostly. */
let version = 0;
let last: readonly Line[] = [];

function versionOf(now: readonly Line[]): number {
  if (now !== last) {
    last = now;
    version += 1;
  }
  return version;
}

const COLUMNS: readonly Column<Line>[] = [
  { name: "Name", class: "name", draw: drawName },
  { name: "Tokens", class: "num tokens", draw: drawTokens },
];

export function List({
  chosen,
  label,
}: {
  readonly chosen: CatalogueItem | undefined;
  readonly label: string;
}): JSX.Element {
  const shown = lines.value;
  const at = shown.findIndex((line) => "item" in line && line.item === chosen);
  const choose = (index: number): void => {
    // A line of a server is passed over, in the direction of the keys.
    const line = shown[index];
    const target = line !== undefined && "item" in line ? line : shown[index < at ? Math.max(1, index - 1) : index + 1];
    if (target !== undefined && "item" in target) go(hrefOfItem(target.item), { replace: at !== -1, isMove: true });
  };
  return (
    <VirtualTable
      label={label}
      columns={COLUMNS}
      count={shown.length}
      rowAt={(index) => shown[index] as Line}
      keyOf={keyOf}
      version={versionOf(shown)}
      rowHeight={31}
      rowClass={(line) => ("item" in line ? (line.item.hidden === undefined ? "" : "hidden-item") : "server-line")}
      chosen={at}
      onChoose={choose}
      onOpen={choose}
    />
  );
}

function keyOf(line: Line): string {
  return "item" in line ? `${line.item.kind} ${line.item.server ?? ""}/${line.item.name}` : `server ${line.server}`;
}

function drawName(line: Line): JSX.Element {
  if (!("item" in line)) {
    return (
      <span class={`row ${colorOf(line.server)}`}>
        <span class="swatch" aria-hidden="true" />
        <b class="cut">
          <InertText text={line.server === "" ? "the gateway" : line.server} max={100} />
        </b>
        <span class="faint">{count(line.count)}</span>
      </span>
    );
  }
  const { name, hidden } = line.item;
  const title = inertString(name.slice(0, 500));
  const isLong = name.length > MAX_WHOLE && name.length < 200;
  return (
    <span class="row">
      <a
        class={isLong ? "grow in-two" : "cut grow"}
        href={hrefOfItem(line.item)}
        tabIndex={-1}
        title={title}
        aria-label={isLong ? title : undefined}
      >
        {isLong ? (
          <>
            <span class="cut">
              <InertText text={name.slice(0, -TAIL)} />
            </span>
            <InertText text={name.slice(-TAIL)} />
          </>
        ) : (
          <InertText text={name} max={200} />
        )}
      </a>
      {hidden === undefined ? null : <Tag>{hidden === "disabled" ? "hidden" : "hidden by chain"}</Tag>}
    </span>
  );
}

function drawTokens(line: Line): string {
  const { isEstimated = true } = catalogue.value ?? {};
  const tokens = "item" in line ? line.item.tokens : line.tokens;
  return `${isEstimated ? "~" : ""}${count(tokens)}`;
}
