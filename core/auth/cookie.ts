/** The first cookie of that name in a Cookie header, without parsing the others: this is the hot path. */
export function readCookie(header: string | undefined, name: string): string | undefined {
  if (header === undefined) return undefined
  let start = 0
  while (start < header.length) {
    let end = header.indexOf(';', start)
    if (end === -1) end = header.length
    while (header.charCodeAt(start) === 32) start++
    if (header.startsWith(name, start) && header.charCodeAt(start + name.length) === 61) {
      return header.slice(start + name.length + 1, end).trim()
    }
    start = end + 1
  }
  return undefined
}
