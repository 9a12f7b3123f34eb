export const blockBytes = 512

const sizeAt = 124
const sizeLength = 12
const sumAt = 148
const sumLength = 8
const typeAt = 156

/** A header says the sum of its bytes, which some programs have added up with signs. */
export function isTarHeader(block: Buffer): boolean {
  const text = block.toString('latin1', sumAt, sumAt + sumLength).replace(/^[\0 ]+|[\0 ].*$/gs, '')
  if (!/^[0-7]+$/.test(text)) return false
  let [unsigned, signed] = [0, 0]
  for (const [index, byte] of block.entries()) {
    const value = index >= sumAt && index < sumAt + sumLength ? 0x20 : byte
    unsigned += value
    signed += value > 127 ? value - 256 : value
  }
  const told = Number.parseInt(text, 8)
  return told === unsigned || told === signed
}

export const typeOf = (header: Buffer): string => header.toString('latin1', typeAt, typeAt + 1)

/** How many bytes follow it; undefined where it is not written in a way that all readers understand alike. */
export function sizeOf(header: Buffer): number | undefined {
  if (header[sizeAt] === 0x80) {
    const size = BigInt(`0x${header.toString('hex', sizeAt + 1, sizeAt + sizeLength)}`)
    return size <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(size) : undefined
  }
  const text = header.toString('latin1', sizeAt, sizeAt + sizeLength)
  if (/^[ \0]*$/.test(text)) return 0
  const [, digits] = /^ *([0-7]+)[ \0]*$/.exec(text) ?? []
  return digits === undefined ? undefined : Number.parseInt(digits, 8)
}
