// Loaded before a measured program with `--import`: reports CPU time and memory of the process each time the parent sends
// "cost". Exits when the channel closes.

process.on("message", (message) => {
  if (message !== "cost") return;
  const { user, system } = process.cpuUsage();
  const { maxRSS } = process.resourceUsage();
  process.send?.({
    cpuMs: (user + system) / 1000,
    rssMb: process.memoryUsage.rss() / 1024 ** 2,
    peakMb: maxRSS / 1024,
  });
});
process.once("disconnect", () => process.exit());
