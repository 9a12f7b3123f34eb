import { isReadable, type Readable } from 'node:stream'
import { isReply } from '../../sdk/reply.js'

/** Gives up the source of an answer that is not sent: nobody else would ever close it. */
export function discardResult(result: unknown): void {
  if (!isReply(result)) {
    destroy(result)
    return
  }
  if (result.kind === 'download') destroy(result.source)
  else if (result.kind === 'sse') destroy(result.frames)
  else if (result.kind === 'value') destroy(result.value)
}

function destroy(source: unknown): void {
  // A stream of the web has neither: it is closed by nobody but its reader.
  if (!isReadable(source as Readable) || typeof (source as Readable).destroy !== 'function') return
  // A file that could not be opened would be an error that nobody caught.
  const readable = source as Readable
  readable.on('error', () => {})
  readable.destroy()
}
