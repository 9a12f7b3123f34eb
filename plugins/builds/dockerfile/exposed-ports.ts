import { blankSeparated } from './characters.js'

/** How many ports an EXPOSE names, its variables put in: `80 443/tcp 8000-8100/udp`. */
export function exposedPorts(text: string): number {
  let count = 0
  for (const word of blankSeparated(text)) {
    const range = /^(\d{1,5})-(\d{1,5})$/.exec((word.split('/', 1)[0] ?? '').replace(/^.*:/, ''))
    count += range === null ? 1 : Math.max(1, Number(range[2]) - Number(range[1]) + 1)
  }
  return count
}
