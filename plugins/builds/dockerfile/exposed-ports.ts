import { quoted } from './bad-dockerfile.js'
import type { Refuse } from './words.js'

/** `80`, `443/tcp`, `8000-8100/udp`; before a colon a port of the host, which counts for nothing. */
const port = /^(?:[^/]*:)?(\d{1,5})(?:-(\d{1,5}))?(?:\/\w+)?$/

/**
 * How many ports an EXPOSE names, its variables put in. The engine splits at white space of every kind then, and takes
 * other ways to write a range too, such as one with zeros before its numbers: those are refused.
 */
export function exposedPorts(text: string, refuse: Refuse): number {
  let count = 0
  for (const word of text.split(/[\s\u0085]+/)) {
    if (word === '') continue
    const [, first, last = first] =
      port.exec(word) ??
      refuse(
        `EXPOSE holds ${quoted(word)}, which is no port and no range of ports: write 8080, 8080/udp or 8000-8010`
      )
    count += Math.max(1, Number(last) - Number(first) + 1)
  }
  return count
}
