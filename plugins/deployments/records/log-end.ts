/** How much of each log a list shows, in bytes of UTF-8, and of how many: what a page with several would ask for one by one. */
export const logEndBytes = 16 * 1024
export const listedLogs = 20

/** The last whole lines that take at most `maxBytes`. Of text with more than that, the beginning may be lost already. */
export function wholeLinesAtEnd(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text)
  const from = bytes.length - maxBytes
  if (from <= 0) return text
  // A line that begins just there is whole.
  const newline = bytes.indexOf('\n', from - 1)
  return newline === -1 ? '' : bytes.subarray(newline + 1).toString()
}
