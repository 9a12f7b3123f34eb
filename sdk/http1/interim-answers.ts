import type { ClientRequest } from 'node:http'
import { stopParsing } from './stop-parsing.js'

/** More than a server sends before a final answer. */
const usualMost = 20

/**
 * What an untrusted server sends instead of an answer. `interim`: interim answers (1xx) and no final one. `none`: nothing, or a
 * change of protocols (101) that was not asked for.
 */
export type AnswerFault = 'interim' | 'none'

/**
 * Calls `refuse`, once, for a request to an untrusted server that ends without an answer and without an error, or is answered by
 * more than `most` interim answers (1xx), upon which it is given up. Node reads interim answers for as long as they come, on
 * the thread of everything else, and a time limit only says how long; and of a change of protocols that no listener waits
 * for it tells `close` alone, so that a promise of the answer would outlast its signal and its limit.
 */
export function guardAnswer(
  outgoing: ClientRequest,
  refuse: (fault: AnswerFault) => void,
  most = usualMost
): void {
  let isOver = false
  const over = (fault?: AnswerFault): void => {
    if (isOver) return
    isOver = true
    if (fault !== undefined) refuse(fault)
  }
  outgoing.once('response', () => over())
  outgoing.once('error', () => over())
  outgoing.once('close', () => over('none'))
  let count = 0
  outgoing.on('information', () => {
    count += 1
    if (count !== most + 1) return
    over('interim')
    abandon(outgoing)
  })
}

/** Destroys a request. Nothing more of what has come for it is parsed, which its own `destroy` leaves to Node. */
export function abandon(outgoing: ClientRequest): void {
  if (outgoing.socket !== null) stopParsing(outgoing.socket)
  outgoing.destroy()
}
