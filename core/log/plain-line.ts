import { type Logger, symbols } from 'pino'
import { JsonMembers } from './json-members.js'

/** What pino keeps about a logger, and asks anew for every member of every line. */
interface Kept {
  readonly [symbols.serializersSym]: object
  readonly [symbols.stringifiersSym]: object
  readonly [symbols.lsCacheSym]: Readonly<Record<number, string>>
  readonly [symbols.formattersSym]: { readonly log?: unknown }
  readonly [symbols.chindingsSym]: string
  readonly [msgPrefix: symbol]: unknown
}
/** Which its types do not name. */
const { msgPrefixSym } = symbols as unknown as { readonly msgPrefixSym: symbol }

const kept = (log: Logger): Kept => log as unknown as Kept

/** True for a logger that says of its lines nothing more than the one it descends from, but for bindings. */
export function writesAs(log: Logger, root: Logger): boolean {
  const [own, first] = [kept(log), kept(root)]
  return (
    own[symbols.serializersSym] === first[symbols.serializersSym] &&
    own[symbols.stringifiersSym] === first[symbols.stringifiersSym] &&
    own[symbols.lsCacheSym] === first[symbols.lsCacheSym] &&
    own[symbols.formattersSym].log === undefined &&
    own[msgPrefixSym] === undefined
  )
}

/** The line that pino would write of plain data and a message, in a third of the time. `time` is a member with its comma. */
export function plainLine(
  log: Logger,
  level: number,
  time: string,
  members: object,
  message: string
): string {
  const own = kept(log)
  const text = members instanceof JsonMembers ? members.text : JSON.stringify(members).slice(1, -1)
  const between = text === '' ? '' : `,${text}`
  return `${own[symbols.lsCacheSym][level]}${time}${own[symbols.chindingsSym]}${between},"msg":${JSON.stringify(message)}}\n`
}
