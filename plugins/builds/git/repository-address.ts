import { parseSshRepository, type SshRepository } from 'busbar/api/applications'
import { problems } from '../problems.js'

/** A repository that can be fetched over HTTP. Holds no secret but `userInfo`. */
export interface HttpAddress {
  readonly kind: 'http'
  /** Without credentials: fit for an argument, a log and an error. */
  readonly url: string
  readonly origin: string
  readonly isSecure: boolean
  readonly host: string
  readonly port: number
  /** `user:password` that was written into the address. */
  readonly userInfo: string | null
}

/** One that is fetched over SSH. Holds no secret. */
export type SshAddress = SshRepository & { readonly kind: 'ssh' }

type RepositoryAddress = HttpAddress | SshAddress

/** Reads the address a user gave. */
export function parseRepository(repo: string): RepositoryAddress {
  const ssh = parseSshRepository(repo)
  return ssh === undefined ? parseHttpRepository(repo) : { kind: 'ssh', ...ssh }
}

/** The same, where it cannot be one of SSH. */
export function parseHttpRepository(repo: string): HttpAddress {
  const shown = repo.replace(/\/\/[^/@]*@/, '//').slice(0, 300)
  const url = parseUrl(repo)
  if (url === undefined || repo.length > 2000 || /[\s\u0000-\u001f\u007f]/.test(repo))
    throw problems.badRepository({ repo: shown })
  const userInfo = userInfoOf(url)
  if (userInfo === undefined) throw problems.badRepository({ repo: shown })
  url.username = url.password = ''
  return {
    kind: 'http',
    url: url.href.replace(/(?<!\/)\/+$/, ''),
    origin: url.origin,
    isSecure: url.protocol === 'https:',
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port !== '' ? Number(url.port) : url.protocol === 'https:' ? 443 : 80,
    userInfo
  }
}

/** Undefined where what is written there is no text: a host may send one anywhere. */
function userInfoOf({ username, password }: URL): string | null | undefined {
  try {
    return username === '' ? null : `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  } catch {
    return undefined
  }
}

function parseUrl(text: string): URL | undefined {
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) return undefined
  const url = new URL(text)
  const isPlain = url.hostname !== '' && url.pathname !== '/' && url.search === '' && url.hash === ''
  return isPlain ? url : undefined
}

/** Refuses what git would read as an option or a ref expression. */
export function checkBranch(branch: string): void {
  const isGood =
    branch.length <= 255 &&
    /^[\w.@+#/-]+$/u.test(branch) &&
    !/^[-/.]|\.\.|@\{|\/\/|\/\.|\.lock(\/|$)|[./]$/.test(branch) &&
    branch !== '@'
  if (!isGood) throw problems.badBranch({ branch: branch.slice(0, 100) })
}

/** A full name, so that a short one cannot come to mean another commit. */
export function checkCommit(commit: string): void {
  if (!/^([0-9a-f]{40}|[0-9a-f]{64})$/.test(commit))
    throw problems.badCommit({ commit: commit.slice(0, 100) })
}

const users: ReadonlyArray<readonly [host: RegExp, user: string]> = [
  [/github/, 'x-access-token'],
  [/gitlab/, 'oauth2'],
  [/bitbucket/, 'x-token-auth'],
  [/gitea|forgejo|codeberg/, 'oauth2']
]

/** `user:password` for basic authentication; the token goes by the user name its provider expects. None over SSH. */
export function credentialsFor(address: RepositoryAddress, token: string | null): string | null {
  if (address.kind === 'ssh') return null
  const { host, userInfo } = address
  if (token === null || token === '') return userInfo
  if (token.includes(':')) return token
  const user = users.find(([pattern]) => pattern.test(host))?.[1]
  return user === undefined ? `${token}:` : `${user}:${token}`
}
