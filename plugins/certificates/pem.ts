/** A block of a PEM text: what stands in its lines of dashes, and the whole of it. */
export interface PemBlock {
  readonly label: string
  readonly text: string
}

const dashes = '-----'
const begin = `${dashes}BEGIN `

/**
 * The blocks of a text, in order; undefined where one that begins does not end, or there are more than `most`. What
 * stands between them is left out, as OpenSSL leaves it out. Looks at each character a bounded number of times.
 */
export function pemBlocks(text: string, most: number): readonly PemBlock[] | undefined {
  const blocks: PemBlock[] = []
  let at = text.indexOf(begin)
  while (at >= 0) {
    const labelEnd = text.indexOf(dashes, at + begin.length)
    const label = labelEnd < 0 ? '' : text.slice(at + begin.length, labelEnd)
    const isLabel = label.length > 0 && label.length <= 40 && /^[A-Z0-9 ]+$/.test(label)
    if (!isLabel || blocks.length === most) return undefined
    const closing = `${dashes}END ${label}${dashes}`
    const end = text.indexOf(closing, labelEnd)
    if (end < 0) return undefined
    const after = end + closing.length
    blocks.push({ label, text: `${text.slice(at, after)}\n` })
    at = text.indexOf(begin, after)
  }
  return blocks
}
