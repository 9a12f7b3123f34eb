import { Readable } from 'node:stream'
import { TarCheck, TarFault } from './tar-check.js'

/** The bytes of a tar, each of them looked at: it fails where `TarCheck` does, and where it ends too early. */
export function checkedTar(tar: Readable): { readonly content: Readable; readonly check: TarCheck } {
  const check = new TarCheck()
  async function* pieces(): AsyncGenerator<Buffer> {
    for await (const piece of tar as AsyncIterable<Buffer>) {
      check.read(piece)
      yield piece
    }
    if (!check.isWhole) throw new TarFault('the archive of the volume ends before its end')
  }
  const content = Readable.from(pieces(), { objectMode: false })
  // Who reads is told; who has given up is not asked any more.
  content.on('error', () => {})
  content.once('close', () => tar.destroy())
  return { content, check }
}
