import type { LookupAddress } from 'node:dns'
import { mkdir, readdir, rm, stat } from 'node:fs/promises'
import { isIP } from 'node:net'
import { join } from 'node:path'
import { type Clock, cutMark, type Exec, type Problem } from 'busbar/sdk'
import type { BuildContext, Commit } from '../api.js'
import { type HostRules, resolveHost } from '../network/host-resolution.js'
import { problems } from '../problems.js'
import type { DeployKey, KnownHosts } from '../ssh/deploy-keys.js'
import { hostName } from '../ssh/host-key.js'
import { sshProblems } from '../ssh/problems.js'
import { makeEmptyRepository } from './empty-repository.js'
import {
  type Connection,
  checkGitVersion,
  type GitLimits,
  gitEnvironment,
  httpTransport,
  inMebibytes,
  localGit,
  runGit,
  type Transport
} from './git-command.js'
import { type Attempt, gitProblem, isRedirect, isUnadvertised, localProblem } from './git-failure.js'
import { redirectTarget } from './redirect.js'
import {
  checkBranch,
  checkCommit,
  credentialsFor,
  type HttpAddress,
  parseRepository,
  type SshAddress
} from './repository-address.js'
import { isUnconnected, sshProblem } from './ssh-failure.js'
import { checkSsh, type SshFiles, withSshFiles } from './ssh-transport.js'

interface GitSourceDependencies extends HostRules {
  readonly exec: Exec
  readonly clock: Clock
  readonly limits: GitLimits
}

export interface GitContext extends BuildContext {
  /** Takes secrets out of what git says. */
  clean(text: string): string
  /** What the checkout takes by now, about twice a second while it grows. */
  onCheckoutSize?(bytes: number): void
}

export interface CloneRequest {
  readonly repo: string
  readonly branch: string | null
  readonly token: string | null
  /** For a repository that is read over SSH. */
  readonly deployKey?: DeployKey
  /** The hosts that its application knows; absent: none, and none is remembered. */
  readonly knownHosts?: KnownHosts
  /** Exactly this commit instead of the branch's newest. */
  readonly commit?: string
  /** Where the tree goes; made, and must not exist yet. */
  readonly directory: string
  /** An empty directory that git takes for its user's home. */
  readonly home: string
}

const maxRedirects = 5
const maxFiles = 300_000
/** Of all of them together: reading a tree holds its paths in memory, and one may be 4 KiB long. */
const maxPathBytes = 32 * 2 ** 20
/** git writes below its own folder; reading or removing what is there takes the whole path, which may have 4095 bytes. */
const longestPathBytes = 3900
const sizeCheckMs = 500
/** What the host has to say goes into the build log, up to so many lines. */
const maxRemoteLines = 200

/** Checks out one commit of an untrusted repository. */
export class GitSource {
  #versionCheck: Promise<void> | undefined
  #sshCheck: Promise<void> | undefined

  constructor(private readonly dependencies: GitSourceDependencies) {}

  /** The tree is in `directory` then, without `.git`. */
  async clone(request: CloneRequest, context: GitContext): Promise<Commit> {
    const address = parseRepository(request.repo)
    if (request.branch !== null && request.branch !== '') checkBranch(request.branch)
    if (request.commit !== undefined) checkCommit(request.commit)
    await this.#requireGit()
    if (address.kind === 'ssh') await this.#requireSsh()
    await mkdir(request.directory, { recursive: true })
    const clone = new Clone(
      this.dependencies,
      { ...request, branch: request.branch === '' ? null : request.branch },
      context
    )
    await clone.begin()
    await clone.fetch(async () =>
      address.kind === 'ssh'
        ? await clone.fetchOverSsh(address)
        : await clone.fetchOverHttp({
            address,
            pinned: [],
            credentials: credentialsFor(address, request.token)
          })
    )
    const both = [clone.checkOut(), clone.describe()] as const
    // Whatever fails, nothing may still be at work in a folder that is about to be removed.
    await Promise.allSettled(both)
    const [, commit] = await Promise.all(both)
    await clone.finish()
    context.log({
      level: 'info',
      msg: `Commit ${commit.sha.slice(0, 12)}: ${commit.message} (${commit.author})`
    })
    return commit
  }

  async #requireGit(): Promise<void> {
    this.#versionCheck ??= checkGitVersion(this.dependencies.exec, !this.dependencies.hostPolicy.allowsAll)
    await this.#versionCheck.catch((error: unknown) => {
      this.#versionCheck = undefined
      throw error
    })
  }

  async #requireSsh(): Promise<void> {
    this.#sshCheck ??= checkSsh(this.dependencies.exec)
    await this.#sshCheck.catch((error: unknown) => {
      this.#sshCheck = undefined
      throw error
    })
  }
}

class Clone {
  readonly #repo: string
  readonly #over = new AbortController()
  readonly #signal: AbortSignal
  #remoteLines = 0
  #packBytes = 0
  #treeBytes = 0

  constructor(
    private readonly dependencies: GitSourceDependencies,
    private readonly request: CloneRequest,
    private readonly context: GitContext
  ) {
    this.#repo = parseRepository(request.repo).url
    this.#signal = AbortSignal.any([context.signal, this.#over.signal])
  }

  async begin(): Promise<void> {
    await makeEmptyRepository(this.request.directory).catch((error: Error) => {
      throw localProblem(
        error.message,
        { repo: this.#repo, ...inMebibytes(this.dependencies.limits) },
        'there can be no repository'
      )
    })
  }

  async local(args: readonly string[], onLine?: (line: string) => void): Promise<string> {
    const { directory: cwd, home } = this.request
    return (
      await localGit(this.dependencies.exec, args, {
        cwd,
        home,
        limits: this.dependencies.limits,
        signal: this.#signal,
        repo: this.#repo,
        onLine
      })
    ).stdout
  }

  async fetch(by: () => Promise<void>): Promise<void> {
    const { branch, commit } = this.request
    this.context.log({
      level: 'info',
      msg: `Cloning ${this.#repo} (${commit === undefined ? (branch === null ? 'default branch' : `branch ${branch}`) : `commit ${commit.slice(0, 12)}`})`
    })
    const stopWatching = this.dependencies.clock.every(sizeCheckMs, async () => await this.#watchSize())
    try {
      await by()
    } finally {
      stopWatching()
    }
  }

  async fetchOverHttp(first: Connection): Promise<void> {
    let connection = first
    for (let hops = 0; hops <= maxRedirects; hops++) {
      connection = { ...connection, pinned: await this.#pinned(connection.address) }
      const stderr = await this.#fetchFrom(connection.address.url, httpTransport(connection))
      if (stderr === undefined) return
      if (!isRedirect(stderr)) throw gitProblem(stderr, this.#attempt(connection.credentials !== null))
      const address = await redirectTarget(connection, this.#signal)
      this.context.log({ level: 'info', msg: `The repository has moved to ${address.url}` })
      const isSameHost = address.origin === connection.address.origin
      connection = { address, pinned: [], credentials: isSameHost ? connection.credentials : null }
    }
    throw problems.redirect({
      repo: this.#repo,
      target: connection.address.url,
      reason: `there are more than ${maxRedirects} redirects`
    })
  }

  async fetchOverSsh(address: SshAddress): Promise<void> {
    const { deployKey, knownHosts, directory, home } = this.request
    if (deployKey === undefined) throw sshProblems.noDeployKey({ repo: this.#repo })
    const addresses = await resolveHost(address.host, this.dependencies)
    const known = await knownHosts?.find(hostName(address))
    const { privateKey, publicKey } = deployKey
    const access = { address, privateKey, knownKey: known?.key, directory, home }
    const stderr = await withSshFiles(access, async files => {
      try {
        return await this.#fetchFromAny(address.url, addresses, files)
      } finally {
        // Also of a host that has refused the key: it is the same host when the key has been added there.
        if (known === undefined) await this.#rememberHost(files)
      }
    })
    if (stderr !== undefined)
      throw sshProblem(stderr, {
        ...this.#attempt(true),
        host: hostName(address),
        publicKey,
        knownFingerprint: known?.fingerprint
      })
  }

  /** ssh is told one address; where nobody is at it, the next one is taken. */
  async #fetchFromAny(
    url: string,
    addresses: readonly LookupAddress[],
    files: SshFiles
  ): Promise<string | undefined> {
    let stderr: string | undefined
    for (const { address } of addresses) {
      stderr = await this.#fetchFrom(url, files.transport(address))
      if (stderr === undefined || !isUnconnected(stderr)) return stderr
    }
    return stderr
  }

  async #rememberHost(files: SshFiles): Promise<void> {
    const found = await files.hostKey()
    if (found === undefined) return
    await this.request.knownHosts?.add(found)
    this.context.log({
      level: 'info',
      msg: `The host ${found.host} is known by its key ${found.key.split(' ')[0] ?? ''} ${found.fingerprint} from now on; compare it with what the host publishes`
    })
  }

  /** What git said when it failed; undefined when the wanted commit is here. */
  async #fetchFrom(url: string, transport: Transport): Promise<string | undefined> {
    const { branch, commit } = this.request
    const newest = branch === null ? 'HEAD' : `refs/heads/${branch}`
    const failure = await this.#runFetch(transport, ['--depth=1', '--', url, commit ?? newest])
    if (failure === undefined || commit === undefined || !isUnadvertised(failure)) return failure
    // The server does not give commits by name, so the commit is looked for in the history of the branch.
    const full = await this.#runFetch(transport, ['--', url, newest])
    if (full !== undefined) return full
    await this.local(['cat-file', '-e', `${commit}^{commit}`]).catch(() => {
      throw problems.commitMissing({ commit, repo: this.#repo })
    })
    return undefined
  }

  async #runFetch(transport: Transport, args: readonly string[]): Promise<string | undefined> {
    const { exec, limits } = this.dependencies
    const result = await runGit(
      exec,
      ['fetch', '--no-tags', '--no-recurse-submodules', '--progress', ...args],
      {
        cwd: this.request.directory,
        limits,
        env: gitEnvironment(this.request.home, limits, transport),
        timeoutMs: limits.fetchMs,
        signal: this.#signal,
        onLine: line => {
          if (/^(remote: (?!Enumerating|Counting|Compressing|Total)\S|Receiving objects)/.test(line))
            this.#remoteLine(line.trim())
        }
      }
    )
    if (result.exitCode === 0) return undefined
    if (result.timedOut)
      throw problems.timeout({ repo: this.#repo, minutes: Math.ceil(limits.fetchMs / 60_000) })
    return this.context.clean(result.truncated ? result.stderr + cutMark : result.stderr)
  }

  #remoteLine(msg: string): void {
    if (++this.#remoteLines <= maxRemoteLines) this.context.log({ level: 'info', stream: 'stderr', msg })
    else if (this.#remoteLines === maxRemoteLines + 1)
      this.context.log({
        level: 'warning',
        msg: `The host goes on; only ${maxRemoteLines} lines of it are kept`
      })
  }

  #attempt(hasCredentials: boolean): Attempt {
    return {
      repo: this.#repo,
      branch: this.request.branch,
      hasCredentials,
      ...inMebibytes(this.dependencies.limits)
    }
  }

  async #pinned({ host }: HttpAddress): Promise<readonly LookupAddress[]> {
    const found = await resolveHost(host, this.dependencies)
    return isIP(host) !== 0 ? [] : found
  }

  async #watchSize(): Promise<void> {
    const folder = join(this.request.directory, '.git/objects/pack')
    const names = await readdir(folder).catch(() => [])
    const sizes = await Promise.all(
      names.map(
        async name =>
          await stat(join(folder, name)).then(
            ({ size }) => size,
            () => 0
          )
      )
    )
    this.#packBytes = sizes.reduce((sum, size) => sum + size, 0)
    this.context.onCheckoutSize?.(this.#packBytes)
    if (this.#packBytes > this.dependencies.limits.checkoutBytes) this.#over.abort(this.#tooLarge())
  }

  #tooLarge(): Problem {
    return problems.tooLarge({
      repo: this.#repo,
      limit: Math.round(this.dependencies.limits.checkoutBytes / 2 ** 20)
    })
  }

  #badPath(line: string, longest: number): Problem {
    const path = line.slice(line.indexOf('\t') + 1)
    const shown = path.length > 300 ? `${path.slice(0, 150)} … ${path.slice(-130)}` : path
    return problems.badFileName({
      repo: this.#repo,
      reason: `${printable(shown, 300)} has more than ${longest} bytes (File name too long)`
    })
  }

  get #wanted(): string {
    return this.request.commit ?? 'FETCH_HEAD'
  }

  async describe(): Promise<Commit> {
    const text = await this.local(['log', '-1', '--format=%H%x00%an%x00%s', this.#wanted])
    const [sha = '', author = '', subject = ''] = text.trim().split('\0')
    return { sha, message: printable(subject, 500), author: printable(author, 200) }
  }

  /** Looks at the sizes first: a small pack can hold files that fill the disk, directories without number, and paths that fill the memory. */
  async checkOut(): Promise<void> {
    let bytes = 0
    let files = 0
    let pathBytes = 0
    const longest = longestPathBytes - Buffer.byteLength(this.request.directory)
    let notUnderstood = 0
    const submodules: string[] = []
    await this.local(['ls-tree', '-r', '-t', '-l', this.#wanted], line => {
      const [all, mode, size, path = ''] = /^(\d+) \w+ \S+ +(\d+|-)\t(.*)$/s.exec(line) ?? []
      if (all === undefined) notUnderstood++
      if (mode === '160000') submodules.push(path.slice(0, 200))
      bytes += Number(size ?? 0) || 0
      files++
      // A line that is handed on in pieces is too long in any case.
      const length = Buffer.byteLength(path === '' ? line : path)
      pathBytes += length
      if (length > longest) this.#over.abort(this.#badPath(line, longest))
      if (pathBytes > maxPathBytes)
        this.#over.abort(problems.pathsTooLong({ repo: this.#repo, limit: maxPathBytes / 2 ** 20 }))
      if (bytes > this.dependencies.limits.checkoutBytes) this.#over.abort(this.#tooLarge())
      if (files > maxFiles) this.#over.abort(problems.tooManyFiles({ repo: this.#repo, limit: maxFiles }))
    })
    this.#signal.throwIfAborted()
    // The size of a file in such a line is unknown.
    if (notUnderstood > 0)
      throw problems.gitFailed({
        repo: this.#repo,
        reason: `${notUnderstood} lines of git ls-tree are not understood`
      })
    this.#treeBytes = bytes
    this.context.onCheckoutSize?.(this.#packBytes + bytes)
    if (submodules.length > 0) this.context.log({ level: 'warning', msg: submoduleNote(submodules) })
    await this.local(['checkout', '--quiet', '--force', '--detach', this.#wanted])
  }

  async finish(): Promise<void> {
    // Not part of the source: with it, no step of a build that copies everything could ever be cached.
    await rm(join(this.request.directory, '.git'), { recursive: true, force: true })
    this.context.onCheckoutSize?.(this.#treeBytes)
  }
}

const submoduleNote = (paths: readonly string[]): string =>
  `Submodules are not fetched, their directories are empty: ${paths.slice(0, 5).join(', ')}${paths.length > 5 ? ` and ${paths.length - 5} more` : ''}; put the files into the repository itself, or fetch them in the Dockerfile`

const printable = (text: string, length: number): string =>
  text.replace(/[\u0000-\u001f\u007f]/g, ' ').slice(0, length)
