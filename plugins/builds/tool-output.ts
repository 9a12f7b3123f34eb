import { cutText, type Problem } from 'busbar/sdk'
import { problems } from './problems.js'

const keptLines = 40
const maxReason = 500

/** The last lines that a foreign program has written, by which its failure is explained. */
export class ToolOutput {
  readonly #lines: string[] = []

  /** The line as it is shown, or undefined where there is nothing in it. */
  take(line: string): string | undefined {
    const text = plain(line)
    if (text.trim() === '') return undefined
    this.#lines.push(text)
    if (this.#lines.length > keptLines) this.#lines.shift()
    return text
  }

  get text(): string {
    return this.#lines.join('\n')
  }

  /** The line that most likely says what went wrong. */
  get reason(): string {
    const telling = this.#lines.findLast(line =>
      /\b(error|failed|fatal|cannot|denied|no such|not found)\b/i.test(line)
    )
    return cutText((telling ?? this.#lines.at(-1) ?? 'it said nothing').trim(), maxReason)
  }
}

/** Without colours and cursor movements; of a line that was drawn over, what was last there. */
const plain = (line: string): string =>
  line
    .replace(/\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g, '')
    .replace(/\r$/, '')
    .replace(/^.*\r/s, '')

/** The registry's answer to a program that has pulled an image. */
export function explainDenied(program: string, output: string): Problem | undefined {
  const line = output
    .split('\n')
    .findLast(
      text =>
        /unauthorized|authentication required|access denied|no basic auth credentials|\bdenied: /i.test(
          text
        ) && /image|pull|registry|manifest|fetch/i.test(text)
    )
  return line === undefined
    ? undefined
    : problems.toolDenied({ program, reason: line.trim().slice(0, maxReason) })
}
