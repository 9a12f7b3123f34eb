import { isReadable, type Readable } from 'node:stream'
import { isReply } from '../../sdk/reply.js'

/** Destroys the source of an answer that is not sent, which nothing else would close. */
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
  // A web stream has neither: only its reader can close it.
  if (!isReadable(source as Readable) || typeof (source as Readable).destroy !== 'function') return
  // A file that could not be opened would be an uncaught error.
  const readable = source as Readable
  readable.on('error', () => {})
  readable.destroy()
}
