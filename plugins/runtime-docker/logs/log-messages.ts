import { setTimeout as sleep } from 'node:timers/promises'
import { Turns } from 'busbar/sdk'
import type { LogMessage } from './log-message.js'
import type { LogSplitter } from './log-splitter.js'

/** What comes in small pieces, one soon after the other, is taken together: to take one costs as much as many lines. */
const usualGatherMs = 4
/** So much has come of a container that writes much; the engine has no more room, and waits. */
const muchBytes = 4 * 1024
const fullBytes = 16 * 1024

/** Where the bytes come from that a splitter is given. */
interface LogSource {
  /** How many have come; 0 at the end. */
  more(): Promise<number>
}

/** What is made of the log of a container, as messages: all that has come at once, in the order in which the engine keeps them. */
export async function* logMessages(
  source: LogSource,
  splitter: LogSplitter,
  gatherMs = usualGatherMs
): AsyncGenerator<LogMessage[]> {
  const turns = new Turns()
  let cameAt = Number.NEGATIVE_INFINITY
  // Some has come with the head.
  for (let came = fullBytes; came > 0; came = await source.more()) {
    const messages = splitter.messages()
    if (messages.length > 0) yield messages
    const pauseMs = came < muchBytes ? gatherMs : came < fullBytes ? Math.min(1, gatherMs) : 0
    if (pauseMs > 0 && performance.now() - cameAt < gatherMs) await sleep(pauseMs)
    cameAt = performance.now()
    // Very much may have come already, and of that no step waits for anything.
    if (turns.isOver) await turns.pass()
  }
  splitter.end()
  const messages = splitter.messages()
  if (messages.length > 0) yield messages
}
