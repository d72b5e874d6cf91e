/** The time that this thread has the processor for `work`, in ms: however busy the machine is, it stays about the same. */
export function cpuTimeOf(work: () => unknown): number {
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1_000;
}
