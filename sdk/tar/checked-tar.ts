import { Readable } from 'node:stream'
import { TarCheck, TarFault, volumeFolder } from './tar-check.js'

/**
 * The bytes of a tar as `readVolume` and `getFiles` give it, each of them looked at: it fails where `TarCheck` does, and where it ends too
 * early. `below`: the folder that every name in it begins with.
 */
export function checkedTar(
  tar: Readable,
  below = volumeFolder
): { readonly content: Readable; readonly check: TarCheck } {
  const check = new TarCheck(below)
  async function* pieces(): AsyncGenerator<Buffer> {
    for await (const piece of tar as AsyncIterable<Buffer>) {
      check.read(piece)
      yield piece
    }
    if (!check.isWhole) throw new TarFault('the archive ends before its end')
  }
  const content = Readable.from(pieces(), { objectMode: false })
  // Who reads is told; who has given up is not asked any more.
  content.on('error', () => {})
  content.once('close', () => tar.destroy())
  return { content, check }
}
