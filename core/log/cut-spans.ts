import { cutMark } from 'busbar/sdk'
import { longestNeedle, type Span } from './needle-set.js'

/** `user:password` of an address is known by the `@` behind it, which may be cut off. */
const unfinishedUser = /:\/\/[^\s/?#"'<>]*(?= … \(cut\))/g

const mask = '[REDACTED]'

/**
 * What may be half a secret beside the marks of cuts. Needles are no longer than `longestNeedle`, and of what is found
 * in pieces of that length less than one is left over. What was taken out once stays as it is.
 */
export function cutSpans(text: string): Span[] {
  let at = text.indexOf(cutMark)
  if (at < 0) return []
  const spans = [...text.matchAll(unfinishedUser)].map(({ index, 0: { length } }) => ({
    start: index,
    end: index + length
  }))
  for (; at >= 0; at = text.indexOf(cutMark, at + 1)) {
    const from = Math.max(0, at - longestNeedle)
    const before = text.slice(from, at)
    if (!before.endsWith(mask)) spans.push({ start: from + before.lastIndexOf('\n') + 1, end: at })
    const start = at + cutMark.length
    const [behind = ''] = text.slice(start, start + longestNeedle).split('\n', 1)
    if (!behind.startsWith(mask)) spans.push({ start, end: start + behind.length })
  }
  return spans.filter(({ start, end }) => end > start)
}
