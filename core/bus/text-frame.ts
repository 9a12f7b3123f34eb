/** FIN, and the opcode of a text. */
const finalText = 0x81
/** What stands for a length that is told in two bytes, and in eight. */
const inTwoBytes = 126
const inEightBytes = 127

/**
 * The bytes of one text message, the same for every client: unmasked and whole, as `ws` makes it, without a copy for each step. They may be
 * written to the raw socket beside the frames that ws writes itself: without permessage-deflate ws has no queue of its own and writes each
 * frame whole.
 */
export function textFrame(text: string): Buffer {
  const length = Buffer.byteLength(text)
  const start = length < inTwoBytes ? 2 : length < 2 ** 16 ? 4 : 10
  const frame = Buffer.allocUnsafe(start + length)
  frame[0] = finalText
  if (start === 2) frame[1] = length
  else if (start === 4) {
    frame[1] = inTwoBytes
    frame.writeUInt16BE(length, 2)
  } else {
    frame[1] = inEightBytes
    frame.writeUInt32BE(Math.floor(length / 2 ** 32), 2)
    frame.writeUInt32BE(length % 2 ** 32, 6)
  }
  frame.write(text, start)
  return frame
}
