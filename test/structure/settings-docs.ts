/** The rows of the first table below a heading of a Markdown text, cell by cell. */
export function tableUnder(text: string, heading: string): string[][] {
  const lines = text.split('\n')
  // A heading may name a file after it: `### Keys (`core/…`)`.
  const start = lines.findIndex(line => line === heading || line.startsWith(`${heading} (`))
  const first = lines.findIndex((line, at) => start !== -1 && at > start && line.startsWith('|'))
  if (first === -1) throw new Error(`there is no table below ${heading}`)
  const length = lines.slice(first).findIndex(line => !line.startsWith('|'))
  return lines.slice(first + 2, length === -1 ? undefined : first + length).map(line =>
    line
      .split('|')
      .slice(1, -1)
      .map(cell => cell.trim())
  )
}

/** What a cell has in backquotes. */
export const namesIn = (cell: string): string[] =>
  [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)
