import type { SwitchProof } from '../api.js'

/** What the columns of a deployment hold. */
const most = 2 ** 31 - 1

/** What other people's code has counted, as a number that can be stored. */
const counted = (value: number): number => (value > 0 ? Math.min(Math.round(value), most) : 0)

/**
 * What one switch did to the traffic of several routers; undefined when none has told. Requests add up. The longest gap is
 * that of any, and so is the drain: they are drained at the same time.
 */
export function proofOf(proofs: readonly SwitchProof[]): SwitchProof | undefined {
  if (proofs.length === 0) return undefined
  const sum = (of: (proof: SwitchProof) => number): number =>
    counted(proofs.reduce((total, proof) => total + counted(of(proof)), 0))
  const longest = (of: (proof: SwitchProof) => number): number =>
    Math.max(...proofs.map(proof => counted(of(proof))))
  return {
    served: sum(({ served }) => served),
    failed: sum(({ failed }) => failed),
    longestGapMs: longest(({ longestGapMs }) => longestGapMs),
    drainMs: longest(({ drainMs }) => drainMs),
    cut: sum(({ cut }) => cut)
  }
}
