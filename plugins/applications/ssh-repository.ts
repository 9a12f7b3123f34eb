import { isIPv6 } from 'node:net'

/** A repository that is read over SSH, in either of the forms that git takes. */
export interface SshRepository {
  /** As git is told it: nothing in it can be mistaken for an option, by git, by ssh or by a shell. */
  readonly url: string
  readonly user: string
  /** In lower case; an address of IPv6 without brackets. */
  readonly host: string
  readonly port: number
}

const user = '(?<user>[A-Za-z0-9_][A-Za-z0-9_.-]{0,63})'
const hostname = '[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?'
/** `git@host:owner/repository.git`. */
const scpForm = new RegExp(`^${user}@(?<host>${hostname}):(?<path>.+)$`, 's')
/** `ssh://git@host:2222/owner/repository.git`; without a user it is `git`. */
const urlForm = new RegExp(
  `^ssh://(?:${user}@)?(?<host>${hostname}|\\[[0-9A-Fa-f:.]{2,45}\\])(?::(?<port>\\d{1,5}))?(?<path>/.+)$`,
  's'
)
/** Hosts of repositories write spaces as `%20`. */
const segmentForm = /^[A-Za-z0-9._~+@%=,][A-Za-z0-9._~+@%=,-]*$/

/** Undefined when it is none, or holds what no host of repositories uses: `-` in front, blanks, quotes, `..`. */
export function parseSshRepository(text: string): SshRepository | undefined {
  if (text.length > 2000) return undefined
  const isUrl = /^ssh:\/\//i.test(text)
  const found = (isUrl ? urlForm : scpForm).exec(isUrl ? `ssh${text.slice(3)}` : text)?.groups
  if (found === undefined) return undefined
  const { host: written = '', path: whole = '', port: portText = '22', user: name = 'git' } = found
  const host = written.toLowerCase()
  const path = whole.replace(/(?<!\/)\/+$/, '')
  const port = Number(portText)
  // git takes escapes of a URL apart, and ssh would get what they stand for.
  const isGood =
    port >= 1 &&
    port <= 65_535 &&
    (!host.startsWith('[') || isIPv6(host.slice(1, -1))) &&
    !(isUrl && path.includes('%')) &&
    path.replace(/^\//, '').split('/').every(isSegment)
  if (!isGood) return undefined
  return {
    url: isUrl ? `ssh://${name}@${host}${port === 22 ? '' : `:${port}`}${path}` : `${name}@${host}:${path}`,
    user: name,
    host: host.replace(/^\[|\]$/g, ''),
    port
  }
}

const isSegment = (segment: string): boolean =>
  segmentForm.test(segment) && segment !== '.' && segment !== '..'
