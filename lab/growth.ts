const factor = 10
/** Quadratic work would take a hundred times as long. */
const mostRatio = 30
/** Below this a measurement says nothing. */
const floorMs = 20
const rounds = 3
/** Who shares the processor takes away its caches: what grows too fast does so each time. */
const attempts = 3
const slowMs = 5_000

/**
 * How the time of `work` grows with its input: null when ten times the input takes about ten times as long,
 * otherwise what was measured, each time that it was. The best of a few rounds counts, as garbage collection and the compiler make one slower.
 */
export async function growthFault(size: number, work: (size: number) => unknown): Promise<string | null> {
  if ((await timeOf(size, work)) <= floorMs * mostRatio) return null
  let fault: string | null = null
  for (let attempt = 0; attempt < attempts; attempt++) {
    const small = await best(size / factor, work)
    const large = await best(size, work)
    if (large <= Math.max(small, floorMs) * mostRatio) return null
    fault = `${small.toFixed(1)} ms for ${size / factor}, ${large.toFixed(1)} ms for ${size}`
    if (large > slowMs) break
  }
  return fault
}

async function best(size: number, work: (size: number) => unknown): Promise<number> {
  let least = Infinity
  // What takes very long once is slow enough to tell.
  for (let round = 0; round < rounds && (round === 0 || least < slowMs); round++)
    least = Math.min(least, await timeOf(size, work))
  return least
}

async function timeOf(size: number, work: (size: number) => unknown): Promise<number> {
  // Processor time: on a busy machine the clock on the wall measures the others.
  const before = process.cpuUsage()
  await work(Math.round(size))
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}
