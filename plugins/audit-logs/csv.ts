/** One line of RFC 4180, in which no spreadsheet finds a formula. */
export const csvLine = (cells: readonly string[]): string => `${cells.map(cellOf).join(',')}\r\n`

function cellOf(text: string): string {
  // An apostrophe in front makes a spreadsheet take the rest as text. Tab and return may hide the sign.
  const harmless = /^[\t\r\n ]*[=+\-@]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless
}
