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
  // By index: this is done for each file of an image.
  for (let index = 0; index < block.length; index++) {
    const value = index >= sumAt && index < sumAt + sumLength ? 0x20 : (block[index] ?? 0)
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

/** Of an ordinary file that all may read. Its name: at most 100 characters of ASCII. */
export function fileHeader(name: string, size: number): Buffer {
  const header = Buffer.alloc(blockBytes)
  header.write(name, 0, 'latin1')
  header.write(`0000644\0${'0000000\0'.repeat(2)}`, 100, 'latin1')
  if (size < 8 ** (sizeLength - 1))
    header.write(size.toString(8).padStart(sizeLength - 1, '0'), sizeAt, 'latin1')
  else {
    header[sizeAt] = 0x80
    header.writeBigUInt64BE(BigInt(size), sizeAt + sizeLength - 8)
  }
  header.write('0'.repeat(11), sizeAt + sizeLength, 'latin1')
  header.write('0', typeAt, 'latin1')
  header.write('ustar\0' + '00', 257, 'latin1')
  header.fill(' ', sumAt, sumAt + sumLength)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0`, sumAt, 'latin1')
  return header
}
