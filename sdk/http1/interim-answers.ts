import type { ClientRequest } from 'node:http'
import { stopParsing } from './stop-parsing.js'

/** More than anybody sends before an answer that comes soon. */
const usualMost = 20

/**
 * Gives a request up that is answered by more than `most` interim answers (1xx); `refuse` is called first, once, and the
 * request fails after it. For requests to strangers: Node reads interim answers for as long as they come, on the thread
 * of everything else, and a time limit only says how long.
 */
export function boundInterim(outgoing: ClientRequest, refuse: () => void, most = usualMost): void {
  let count = 0
  outgoing.on('information', () => {
    count += 1
    if (count !== most + 1) return
    refuse()
    abandon(outgoing)
  })
}

/** Destroys a request. Nothing more of what has come for it is parsed, which its own `destroy` leaves to Node. */
export function abandon(outgoing: ClientRequest): void {
  if (outgoing.socket !== null) stopParsing(outgoing.socket)
  outgoing.destroy()
}
