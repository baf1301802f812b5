// The text of a recording: how often it was made, then each line that was seen, with the number of runs in which it was.

export interface Recording {
  runs: number;
  readonly counts: Map<string, number>;
}

export function parseRecording(text: string): Recording {
  const [first = "", ...lines] = text.split("\n");
  const counts = lines
    .filter((line) => line !== "")
    .map((line): [string, number] => {
      const [count = ""] = line.split(" ", 1);
      return [line.slice(count.length + 1), Number(count)];
    });
  return { runs: Number(/^(\d+) runs?$/.exec(first)?.[1] ?? 0), counts: new Map(counts) };
}

export function textOfRecording({ runs, counts }: Recording): string {
  const lines = [...counts].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([line, count]) => `${count} ${line}\n`);
  return `${runs} ${runs === 1 ? "run" : "runs"}\n${lines.join("")}`;
}
