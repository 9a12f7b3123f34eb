// The part of RFC 6455 that an echo needs: whole frames of up to 64 KiB in, unmasked frames out.

export const opcodes = { text: 1, close: 8, ping: 9, pong: 10 }

const maxPayload = 65535

/** Cuts complete frames off the front of `buffer`; the rest waits for more bytes. */
export function readFrames(buffer) {
  const frames = []
  let rest = buffer
  for (;;) {
    if (rest.length < 2) break
    const opcode = rest[0] & 0x0f
    const isMasked = (rest[1] & 0x80) !== 0
    const short = rest[1] & 0x7f
    if (!isMasked || short === 127) return { frames, rest, isBroken: true }
    const isLong = short === 126
    const start = isLong ? 8 : 6
    if (rest.length < start) break
    const length = isLong ? rest.readUInt16BE(2) : short
    if (rest.length < start + length) break
    const mask = rest.subarray(start - 4, start)
    const payload = Buffer.from(rest.subarray(start, start + length))
    for (let i = 0; i < payload.length; i++) payload[i] ^= mask[i % 4]
    frames.push({ opcode, payload })
    rest = rest.subarray(start + length)
  }
  return { frames, rest, isBroken: false }
}

/** One frame as the server sends it. */
export function writeFrame(opcode, payload) {
  if (payload.length > maxPayload) throw new RangeError(`a frame holds at most ${maxPayload} bytes`)
  const head =
    payload.length < 126
      ? Buffer.from([0x80 | opcode, payload.length])
      : Buffer.from([0x80 | opcode, 126, payload.length >> 8, payload.length & 0xff])
  return Buffer.concat([head, payload])
}
