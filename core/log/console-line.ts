const paint: Readonly<Record<string, number>> = {
  trace: 90,
  debug: 36,
  info: 32,
  warn: 33,
  error: 31,
  fatal: 35
}

/** One log record, as JSON, as a line for people; an error's stack follows, indented. */
export function consoleLine(json: string, isColored: boolean): string {
  const { level, time, msg, plugin, err, error, ...rest } = JSON.parse(json) as Record<string, unknown>
  const name = String(level)
  const dim = (text: string) => (isColored ? `\u001b[90m${text}\u001b[39m` : text)
  const parts = [
    dim(String(time).slice(11, 23)),
    isColored
      ? `\u001b[${paint[name] ?? 39}m${name.toUpperCase().padEnd(5)}\u001b[39m`
      : name.toUpperCase().padEnd(5)
  ]
  if (plugin !== undefined) parts.push(dim(`[${printable(String(plugin))}]`))
  if (msg !== undefined) parts.push(printable(String(msg)))
  for (const [key, value] of Object.entries(rest))
    parts.push(dim(`${printable(key)}=${printable(valueText(value))}`))
  for (const failure of [err, error]) {
    if (failure !== undefined) parts.push(`\n${errorText(failure)}`)
  }
  return `${parts.join(' ').replaceAll(' \n', '\n')}\n`
}

const valueText = (value: unknown) =>
  typeof value === 'string' && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value)

function errorText(failure: unknown): string {
  const text =
    typeof failure === 'object' && failure !== null && 'stack' in failure
      ? String(failure.stack)
      : valueText(failure)
  return text
    .split('\n')
    .map(line => `    ${printable(line.trim())}`)
    .join('\n')
}

/** What comes from outside must neither begin a line of its own nor speak to the terminal. */
const printable = (text: string) =>
  text.replace(/[\u0000-\u001f\u007f-\u009f]/g, control =>
    control === '\n'
      ? '\\n'
      : control === '\t'
        ? ' '
        : `\\x${control.charCodeAt(0).toString(16).padStart(2, '0')}`
  )
