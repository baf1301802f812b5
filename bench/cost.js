// A child tells what it cost, on stderr, when it ends: CPU time, and the most memory that it held.

export function reportCost() {
  process.on("exit", () => {
    const { user, system } = process.cpuUsage();
    const { maxRSS } = process.resourceUsage();
    process.stderr.write(`${JSON.stringify({ cpuMs: (user + system) / 1000, maxRssKb: maxRSS })}\n`);
  });
}
