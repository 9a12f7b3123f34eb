/**
 * Whether a sequence has the terminal answer, as if its user had typed that: the position of the cursor, what kind of terminal
 * it is, its colours. Who asked is not there any more when a screen is shown again, so the answer would be typed for somebody else.
 * Sequences that do anything but draw (strings for the machine) are left out with them.
 */
export function asksTerminal(sequence: string): boolean {
  const kind = sequence[1]
  if (kind === '[') return asking.test(sequence)
  // Titles and links stay; colours are asked for with a question mark, and the clipboard is nobody's business a second time.
  if (kind === ']') return /;\?/.test(sequence) || sequence.startsWith('\u001b]52;')
  return kind === 'Z' || kind === 'P' || kind === '_' || kind === '^' || kind === 'X'
}

/** DSR, DA, DECREQTPARM, reports of windows, of modes and of keyboards, and XTVERSION. */
const asking =
  /^\u001b\[(?:[?>=]?[\d;]{0,60}[nc]|[\d;]{0,60}[xt]|\??[\d;]{0,60}\$p|\?[\d;]{0,60}u|>[\d;]{0,60}q)$/
