const mebibyte = 1024 * 1024
/** The most that a store takes of one upload. */
export const mostParts = 10_000
/** Two parts, one of which is sent while the other is filled; or one that takes all of it. */
const memoryBytes = 64 * mebibyte

/** How long the parts of an upload are, by their number, which counts from 1. */
export interface PartPlan {
  bytesOf(number: number): number
  /** Whether that part takes the memory of two: then the one before it has to be sent before it is filled. */
  takesAll(number: number): boolean
  /** How many there may be. */
  readonly parts: number
  /** The longest object that can be uploaded so. */
  readonly longest: number
  /** What an upload takes of memory. */
  readonly memory: number
}

interface Step {
  /** The last part of this length. */
  readonly last: number
  readonly bytes: number
}

export function planOf(steps: readonly Step[], memory = memoryBytes): PartPlan {
  const bytesOf = (number: number): number =>
    (steps.find(({ last }) => number <= last) ?? steps.at(-1))?.bytes ?? 0
  let longest = 0
  let from = 0
  for (const { last, bytes } of steps) {
    longest += (last - from) * bytes
    from = last
  }
  return { bytesOf, takesAll: number => bytesOf(number) > memory / 2, parts: from, longest, memory }
}

/**
 * How long an object is, is not known when its upload begins, and of 10 000 parts of one length the longest would decide what each
 * upload takes of memory. So parts grow: 16 MiB as far as 15.6 GiB, 32 MiB as far as 109 GiB, and 64 MiB, one after another, as far
 * as 484 GiB. A store takes objects of 5 TiB: that would be half a gigabyte of memory.
 */
export const growing = planOf([
  { last: 1_000, bytes: 16 * mebibyte },
  { last: 4_000, bytes: 32 * mebibyte },
  { last: mostParts, bytes: 64 * mebibyte }
])
/** For stores that refuse an upload whose parts differ in length: as far as 312 GiB. */
export const even = planOf([{ last: mostParts, bytes: 32 * mebibyte }])

/** Cloudflare R2 says so when all parts have been sent. */
export const planFor = (host: string): PartPlan =>
  host.split(':')[0]?.endsWith('.r2.cloudflarestorage.com') === true ? even : growing

/**
 * Cuts a stream into parts as long as planned, but for the last. A part is valid until the next but one is asked for, and one before
 * or with a part that takes all until the next is: the halves of one piece of memory take turns, so that one is sent while the other
 * is filled, and nothing is left for the garbage collector.
 */
export async function* partsOf(
  content: AsyncIterable<Buffer>,
  { bytesOf, takesAll, memory }: PartPlan
): AsyncGenerator<Buffer> {
  // What is not written to yet takes no memory: a short upload pays for what it has.
  let place: Buffer | undefined
  let number = 1
  let from = 0
  let filled = 0
  for await (const chunk of content) {
    place ??= Buffer.allocUnsafeSlow(memory)
    for (let at = 0; at < chunk.length; ) {
      const wanted = bytesOf(number)
      const taken = chunk.copy(place, from + filled, at, at + wanted - filled)
      at += taken
      filled += taken
      if (filled < wanted) continue
      yield place.subarray(from, from + filled)
      number++
      from = takesAll(number) || from > 0 ? 0 : memory / 2
      filled = 0
    }
  }
  if (filled > 0) yield (place as Buffer).subarray(from, from + filled)
}
